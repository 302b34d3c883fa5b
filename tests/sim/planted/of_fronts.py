"""Bugs of fronts, and of roots that serve fronts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.log.places import Settling
from pandomq.broker.publishing.producers import Producers
from pandomq.broker.vhost import Vhost
from pandomq.cluster.proxy.front_channel import FrontChannel
from pandomq.cluster.proxy.private.meta_bindings import MetaBindings
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.methods import Method

NODES: Final = 3


def _echo(patch: Patch) -> None:
    patch.set(Vhost, "outlet_to", lambda vhost, broker: None)


def _take_again(patch: Patch) -> None:
    number_publishes = Producers.number_publishes

    def forgetful(producers: Producers, channel: Channel) -> None:
        number_publishes(producers, channel)
        assert channel.numbering is not None
        channel.numbering.known = 0

    patch.set(Producers, "number_publishes", forgetful)


def _trust_commit(patch: Patch) -> None:
    def trusting(channel: FrontChannel, method: Method, _message: kernel.Message | None) -> None:
        call, channel.in_doubt = channel.in_doubt, None
        if call is not None:
            call.answer(method)

    patch.set(FrontChannel, "_opened_above", trusting)


def _drop_acks(patch: Patch) -> None:
    patch.set(Settling, "settle", lambda settling, queue, sequence, term, method_id: None)


def _settle_by_tag(patch: Patch) -> None:
    def by_tag(settling: Settling, queue: kernel.Queue, sequence: int, term: int, method_id: int) -> None:
        channel = settling._channel
        channel.settle_elsewhere(channel, sequence, method_id)

    patch.set(Settling, "settle", by_tag)


def _bind_once(patch: Patch) -> None:
    patch.set(MetaBindings, "ask_all", lambda bindings: None)


PLANTED_BUGS: Final = (
    PlantedBug("front-hears-itself", "The root returns a publish to the front that has forwarded it.", _echo, NODES),
    PlantedBug("resend-taken-again", "A new root enqueues publishes again that a front repeats.", _take_again, NODES),
    PlantedBug(
        "commit-in-doubt-done", "A front counts a commit as done although its answer was lost.", _trust_commit, NODES
    ),
    PlantedBug("lost-acks-proven", "A front drops acks of messages that an earlier root delivered.", _drop_acks, NODES),
    PlantedBug("settled-by-tag", "A front repeats acks to a new root by delivery tag.", _settle_by_tag, NODES),
    PlantedBug("bound-at-first-root", "A front does not report its bindings to a new root.", _bind_once, NODES),
)
