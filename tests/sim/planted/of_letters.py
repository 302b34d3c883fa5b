"""Bugs of dead letters, of unroutable messages, and of large messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pandomq import kernel
from pandomq.broker import broker as broker_module
from pandomq.broker.broker import Broker
from pandomq.broker.publishing.returns import NO_ROUTE
from pandomq.broker.queues import dead_letters, deaths, queue_settings
from pandomq.broker.queues.deaths import DeathHistory
from pandomq.cluster import peer_messages
from pandomq.cluster.proxy import publishing
from pandomq.cluster.proxy.local_answers import LocalAnswers
from pandomq.limits import FRAME_BYTES_MAX
from pandomq.methods import BasicReturn
from pandomq.node.peers import peer
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pandomq.broker.administration.policy_definition import Definition
    from pandomq.broker.client import Client
    from pandomq.broker.queues.dead_letters import Dead, Put
    from pandomq.cluster.peer_messages import Octets, PeerMessageKind
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.fieldtable import FieldTable


def _see_no_cycle(patch: Patch) -> None:
    patch.set(DeathHistory, "cycles_through", lambda history, queue: False)


def _believe_nobody(patch: Patch) -> None:
    split = deaths._split

    def suspicious(headers: FieldTable, entries: bytes, drop_copies: bool) -> tuple[bytes, DeathHistory | None]:
        return split(headers, entries, drop_copies)[0], None

    patch.set(deaths, "_split", suspicious)


def _tire_early(patch: Patch) -> None:
    limit_of = queue_settings._delivery_limit

    def strict(kind: str, arguments: Mapping[str, Any], definition: Definition) -> int:
        limit = limit_of(kind, arguments, definition)
        return limit - 1 if limit > 0 else limit

    patch.set(queue_settings, "_delivery_limit", strict)


def _drop_pushed_out(patch: Patch) -> None:
    send = dead_letters.send_dead

    def careless(broker: Broker, dead: Dead, put: Put, now_ms: int) -> None:
        send(broker, [row for row in dead if row[2] != kernel.MAXLEN], put, now_ms)

    patch.set(dead_letters, "send_dead", careless)


def _return_late(patch: Patch) -> None:
    held: dict[Broker, list[tuple[kernel.Channel, kernel.Message]]] = {}

    def late(broker: Broker) -> None:
        returned = held.pop(broker, [])
        held[broker] = [(channel, message) for channel, message, _ in broker.engine.returned]
        broker.engine.returned.clear()
        for channel, message in returned:
            if channel.open:
                method = BasicReturn(NO_ROUTE, "NO_ROUTE", message.exchange, message.routing_key)
                channel.owner.reply_with_content(method, message)

    patch.set(broker_module, "return_unroutable", late)


def _forward_without_flags(patch: Patch) -> None:
    publish = publishing.publish

    def modest(front: Front, channel: FrontChannel, message: kernel.Message, flags: int) -> None:
        publish(front, channel, message, flags & ~kernel.MANDATORY)

    patch.set(publishing, "publish", modest)


def _answer_at_once(patch: Patch) -> None:
    patch.set(LocalAnswers, "must_wait", lambda answers, method: False)


def _own_frames(patch: Patch) -> None:
    connect = Broker.connect

    def generous(broker: Broker, **options: Any) -> Client:
        return connect(broker, **{**options, "frame_max": FRAME_BYTES_MAX})

    patch.set(Broker, "connect", generous)


def _lose_last_piece(patch: Patch) -> None:
    pack = peer_messages.pack

    def short(kind: PeerMessageKind, body: bytes) -> Sequence[Octets]:
        parts = pack(kind, body)
        # The start of a frame and its piece, before the end of that frame.
        return parts if len(parts) == 1 else [*parts[:-3], parts[-1]]

    patch.set(peer, "pack", short)


PLANTED_BUGS: Final = (
    PlantedBug("cycle-not-seen", "The broker routes a dead letter in a cycle without end.", _see_no_cycle),
    PlantedBug(
        "deaths-not-believed", "The broker drops `x-death` headers that it wrote before a restart.", _believe_nobody
    ),
    PlantedBug("tired-early", "A message is delivered once less than the delivery limit permits.", _tire_early),
    PlantedBug(
        "pushed-out-is-lost", "A message that leaves a full queue at its head is not dead-lettered.", _drop_pushed_out
    ),
    PlantedBug("returned-late", "An unroutable message is returned after its confirm.", _return_late),
    PlantedBug(
        "mandatory-at-front", "A front does not tell the root that a message is mandatory.", _forward_without_flags, 3
    ),
    PlantedBug(
        "answer-overtakes", "A front answers at once, although the root still owes earlier answers.", _answer_at_once, 3
    ),
    PlantedBug(
        "frames-too-large", "The broker splits messages by its own frame size, not by the client's.", _own_frames
    ),
    PlantedBug(
        "last-piece-lost", "Only the first frame of a large message between brokers is sent.", _lose_last_piece, 3
    ),
)
