"""The facts that an old root sends to its successor beside the log: which messages were delivered, and how often.

Deliveries are in no log. After a crash every message may have been delivered, and is marked as redelivered; after a
hand-over only those that were delivered are. Queues with messages that are not in memory are named as a whole: for them
the takeover is as after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pandomq.broker.publishing.delayed import DelayedMessages

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.broker import Broker


class Delivered(msgspec.Struct, frozen=True, array_like=True):
    """The deliveries of one queue."""

    queue_id: int
    every: bool
    """Any message of the queue may have been delivered."""
    messages: list[tuple[int, int]]
    """If not `every`, the delivered messages: sequence and delivery count."""


_DECODER = msgspec.msgpack.Decoder(list[Delivered])


def encode_delivered(broker: Broker) -> bytes:
    """To be made when everything is committed, and no message is delivered any more."""
    unacked: dict[int, list[tuple[int, int]]] = {}
    for client in broker.clients:
        for channel in client.channels.values():
            for queue, sequence, _, _, delivery_count, _, _ in channel.kernel.unacked():
                unacked.setdefault(queue.queue_id, []).append((sequence, delivery_count))
    found: list[Delivered] = []
    for queue_id, (_, owner) in broker.state.logged.items():
        queue = owner.kernel
        # Messages delivered from a stream stay in it.
        if isinstance(owner, DelayedMessages) or not queue.logged or owner.stream is not None:
            continue
        ready = [(row[0], row[3]) for row in queue.snapshot() if row[4] or row[3]]
        found.append(Delivered(queue_id, bool(queue.pages()), sorted(unacked.get(queue_id, []) + ready)))
    return msgspec.msgpack.encode(found)


def mark_delivered(broker: Broker, payload: bytes) -> None:
    """The successor has the state of its predecessor, and now learns which messages clients have received."""
    for delivered in _DECODER.decode(payload):
        known = broker.state.logged.get(delivered.queue_id)
        if known is None:
            continue
        queue = known[1].kernel
        if delivered.every or not _mark(queue, delivered.messages):
            queue.suspect()


def _mark(queue: kernel.Queue, messages: list[tuple[int, int]]) -> bool:
    """False if some of them are not in memory."""
    if not messages:
        return True
    rows = {row[0]: row for row in queue.snapshot()}
    has_pages = bool(queue.pages())
    for sequence, delivery_count in messages:
        row = rows.get(sequence)
        if row is None:
            if has_pages:
                return False
            # The log never had the message, and the successor does not have it.
            continue
        _, term, deadline_ms, _, _, message = row
        queue.drop(sequence, 1)
        queue.reinstate(message, sequence, term, deadline_ms, delivery_count, True)
    return True
