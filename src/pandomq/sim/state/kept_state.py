"""Everything that a snapshot of a broker holds, in a form that is comparable between brokers of any role.

There is a section for each kind of object. Tables from which brokers evict the oldest row keep their order. The state
does not include what only the root knows (when a queue was used last, how often a message was delivered), nor the
places of pages and chunks on the disk. Settings in force follow from the rest: they show whether policies are applied
in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from random import Random
from typing import Any, Final

import msgspec

from pandomq.broker.broker import Broker
from pandomq.broker.log import snapshot
from pandomq.broker.log.commands import (
    BindExchange,
    BindQueue,
    Command,
    DeclareQueue,
    LeaseCommand,
    NoteHosts,
    StagingCommand,
    decode_command,
    is_inner,
)
from pandomq.broker.log.revival import Revival
from pandomq.kernel.plain.page import Page

Section = dict[Hashable, Any]

CONFIGURATION: Final = ("configuration", "bindings", "in force")
"""Sections that brokers without messages have, too."""
NUMBERS: Final = "next numbers"
"""The next numbers of queues. A broker that applies entries does not know messages that are in no entry, so its numbers
may be lower."""
STARTS: Final = "starts of terms"
PIECE_BYTES: Final = 1 << 20
SHOWN_MAX: Final = 3


def kept_state(broker: Broker) -> dict[str, Section]:
    """Returns the state of a broker that is `at_rest`."""
    found: dict[str, Section] = {"in force": dict(_in_force(broker))}
    for part in _parts(broker):
        for section, key, value in _rows(part, found):
            found.setdefault(section, {})[key] = value
    # Only the root knows the numbers of queues whose messages are not in the log.
    logged = {key for key, (_, owner) in broker.state.logged.items() if owner.kernel.logged and not owner.kernel.local}
    found[NUMBERS] = {key: value for key, value in found.get(NUMBERS, {}).items() if key in logged}
    starts = {
        term: {queue_id: first for queue_id, first in firsts if queue_id in logged}
        for term, firsts in found.get(STARTS, {}).items()
    }
    # A term that began before any such queue existed contains no information.
    found[STARTS] = {term: firsts for term, firsts in starts.items() if firsts}
    return found


def difference(
    ours: dict[str, Section], theirs: dict[str, Section], *, without: Collection[str] = (), only: Collection[str] = ()
) -> str | None:
    """Describes the difference for a reader; None if there is none."""
    texts: list[str] = []
    for name in sorted({*ours, *theirs}):
        if name in without or (only and name not in only):
            continue
        here, there = ours.get(name, {}), theirs.get(name, {})
        keys = [key for key in {**here, **there} if not _same(here.get(key), there.get(key))]
        texts += [f"{name}: {key} is {here.get(key)}, not {there.get(key)}" for key in keys[:SHOWN_MAX]]
    return "; ".join(texts) or None


class _Stored:
    """A page or a chunk of a restored broker, of which only the place is known."""

    __slots__ = ("place",)

    def __init__(self, place: snapshot.StoredAt) -> None:
        self.place = place


def restored(broker: Broker) -> Broker:
    """Returns a broker that was restored from a snapshot of this one. Its pages and chunks cannot be read."""
    other = Broker(
        node_name=broker.node_name,
        encode=broker.encode,
        encode_payload=broker.encode_payload,
        random=Random(0),
        limits=broker.limits,
    )
    revival = Revival(other, _Stored)
    for piece in snapshot.Snapshot(broker, exact=True).pieces(PIECE_BYTES):
        revival.take(piece)
    return other


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, QueuedMessage) and isinstance(other, QueuedMessage):
        return one.size_bytes == other.size_bytes and (one.rest == other.rest or None in (one.rest, other.rest))
    return bool(one == other)


class QueuedMessage(msgspec.Struct, frozen=True):
    """A message in a queue."""

    size_bytes: int
    rest: tuple[int, int, bytes, bytes, bytes] | None
    """Term, deadline, routing, header and body; None if the message is on a page, and not in memory."""


def _parts(broker: Broker) -> Iterator[snapshot.Part]:
    waiting = bytearray()
    for piece in snapshot.Snapshot(broker, exact=True).pieces(PIECE_BYTES):
        waiting += piece
        yield from snapshot.read_parts(waiting)


def _rows(part: snapshot.Part, found: dict[str, Section]) -> Iterator[tuple[str, Hashable, Any]]:
    """Yields section, key and value."""
    match part:
        case snapshot.BrokerSnapshotHead():
            yield "head", "next queue id", part.next_queue_id
            yield "head", "had users", part.had_users
        case snapshot.CommandPart():
            yield from _command_rows(decode_command(part.command), found)
        case snapshot.KeptProducers(rows):
            for row in rows:
                yield "producers", len(found.get("producers", ())), row
        case snapshot.KeptSequences():
            for named in part.of_users():
                yield "named producers", len(found.get("named producers", ())), named
        case snapshot.QueueMark():
            yield NUMBERS, part.queue_id, part.next_sequence
        case snapshot.KeptTermStart(term, firsts):
            yield STARTS, term, (*found.get(STARTS, {}).get(term, ()), *firsts)
        case snapshot.KeptPage():
            yield from _page_rows(part)
        case snapshot.KeptChunk():
            yield "chunks", (part.queue_id, part.first_offset), msgspec.structs.replace(part, stored_at=(0, 0, 0, 0))
        case snapshot.KeptStream():
            yield "streams", part.queue_id, part
        case snapshot.KeptMessage():
            for queue_id, sequence, term, at_ms, _, _ in part.places:
                rest = (term, at_ms, part.routing, part.header, part.body)
                yield "messages", (queue_id, sequence), QueuedMessage(len(part.body), rest)


def _command_rows(command: Command, found: dict[str, Section]) -> Iterator[tuple[str, Hashable, Any]]:
    if isinstance(command, StagingCommand):
        yield "staged batches", len(found.get("staged batches", ())), command
    elif isinstance(command, NoteHosts):
        yield "hosts", "names", command
    elif isinstance(command, LeaseCommand):
        yield "leases", len(found.get("leases", ())), command
    elif isinstance(command, BindQueue | BindExchange):
        # For exchanges that select a destination, the order of the bindings to one destination matters: the oldest one
        # counts.
        before = found.get("bindings", {}).get((command.vhost, command.source), ())
        yield "bindings", (command.vhost, command.source), (*before, command)
    else:
        if isinstance(command, DeclareQueue):
            command = msgspec.structs.replace(command, now_ms=0)
        yield "inner configuration" if is_inner(command) else "configuration", str(command), command


def _page_rows(part: snapshot.KeptPage) -> Iterator[tuple[str, Hashable, Any]]:
    page = Page()
    page.take_layout(part.index)
    page.take_state(part.holes)
    for position in page.positions():
        if page.is_kept(position):
            yield (
                "messages",
                (part.queue_id, page.first + page.offset(position)),
                QueuedMessage(page.size(position), None),
            )


def _in_force(broker: Broker) -> Iterator[tuple[Hashable, Any]]:
    for vhost in broker.state.vhosts.values():
        for queue in vhost.queues.values():
            if queue.owner is None:
                followed = None if queue.policy is None else (queue.policy.policy_name, queue.policy.operator_name)
                yield (vhost.name, "queue", queue.name), (queue.settings, followed)
        for exchange in vhost.router.exchanges.values():
            yield (vhost.name, "exchange", exchange.name), exchange.alternate
