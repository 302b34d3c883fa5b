"""Bugs of timed events: delayed messages, messages with their own expiration, queues that expire."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.broker import deadlines
from pandomq.broker.log.replay import Replay
from pandomq.broker.log.revival import Revival
from pandomq.broker.methods import on_basic
from pandomq.broker.publishing import delayed, publishing
from pandomq.broker.publishing.content_header import Spans, expiration_of, spans_of, with_expiration, with_headers
from pandomq.broker.publishing.delayed import DelayedMessages
from pandomq.broker.queues import deaths, removal
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.log.snapshot import KeptMessage
    from pandomq.broker.queues.queue import Queue

LAST_DIGIT: Final = -1


# Delayed messages.


def _forget_due(patch: Patch) -> None:
    def restored(_replay: Replay, _queue: kernel.Queue, _sequence: int, _message: kernel.Message) -> None:
        """The messages are in the queue, but not in the heap that determines when they are due."""

    patch.set(Replay, "restored", restored)


def _due_at_once(patch: Patch) -> None:
    def reinstated(waiting: DelayedMessages, sequence: int, _at_ms: int) -> None:
        heappush(waiting._heap, (0, sequence))

    patch.set(DelayedMessages, "reinstated", reinstated)


def _not_withdrawn(patch: Patch) -> None:
    def due(waiting: DelayedMessages, now_ms: int) -> list[kernel.Message]:
        """Messages that have left the heap are treated as if they had left the log."""
        held = {row[0]: row[5] for row in waiting.kernel.snapshot()}
        messages = []
        while waiting._heap and waiting._heap[0][0] <= now_ms:
            _, sequence = heappop(waiting._heap)
            if sequence in held:
                messages.append(delayed._released(held[sequence]))
        return messages

    patch.set(DelayedMessages, "due", due)


def _delay_begins_again(patch: Patch) -> None:
    finish = Revival.finish

    def forgetful(revival: Revival, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        finish(revival, now_ms, takeover=takeover, handed_over=handed_over)
        for vhost, owner in revival._broker.state.logged.values():
            if isinstance(owner, DelayedMessages):
                rows = owner.kernel.snapshot()
                owner._heap = sorted((delayed.due_ms(row[5], now_ms), row[0]) for row in rows)
                revival._broker.timers._watched_ms.pop(owner, None)
                revival._broker.timers.watch_delayed(vhost, owner)

    patch.set(Revival, "finish", forgetful)


# Messages with their own expiration.


def _deadlines_not_kept(patch: Patch) -> None:
    take = Revival._take_message

    def endless(revival: Revival, kept: KeptMessage) -> None:
        places = []
        for place in kept.places:
            owner = revival._broker.state.logged[place[0]][1]
            at_ms = place[3] if isinstance(owner, DelayedMessages) else kernel.NEVER_MS
            places.append((*place[:3], at_ms, *place[4:]))
        take(revival, type(kept)(places, kept.routing, kept.header, kept.body))

    patch.set(Revival, "_take_message", endless)


def _digit_lost(patch: Patch) -> None:
    read = publishing._with_plain_expiration

    def hasty(message: kernel.Message) -> kernel.Message:
        found = read(message)
        header = found.header
        spans = spans_of(header)
        text = expiration_of(header, spans)
        return kernel.Message(message.routing, with_expiration(header, spans, text[:LAST_DIGIT] or b"0"), message.body)

    patch.set(publishing, "_with_plain_expiration", hasty)


def _dies_again(patch: Patch) -> None:
    write = with_headers

    def keep(header: bytes, spans: Spans, entries: bytes, *, keep_expiration: bool) -> bytes:
        return write(header, spans, entries, keep_expiration=True)

    patch.set(deaths, "with_headers", keep)


# Queues that expire.


def _expire_used(patch: Patch) -> None:
    def expire(broker: Broker, queue: Queue, now_ms: int) -> None:
        if queue.kernel.deleted:
            return
        due_ms = queue.used_ms + queue.settings.expires_ms
        if due_ms <= now_ms:
            removal.delete_queue(broker, queue)
        else:
            broker.timers.watch_queue(queue, due_ms)

    patch.set(deadlines, "_expire_queue", expire)


def _look_once(patch: Patch) -> None:
    def expire(broker: Broker, queue: Queue, now_ms: int) -> None:
        used_ms = now_ms if queue.kernel.consumer_count else queue.used_ms
        if not queue.kernel.deleted and used_ms + queue.settings.expires_ms <= now_ms:
            removal.delete_queue(broker, queue)

    patch.set(deadlines, "_expire_queue", expire)


def _not_used_since(patch: Patch) -> None:
    finish = Revival.finish

    def old(revival: Revival, now_ms: int, *, takeover: bool = False, handed_over: bytes | None = None) -> None:
        queues = [owner for _, owner in revival._broker.state.logged.values() if not isinstance(owner, DelayedMessages)]
        used = [queue.used_ms for queue in queues]
        finish(revival, now_ms, takeover=takeover, handed_over=handed_over)
        for queue, used_ms in zip(queues, used, strict=True):
            queue.used_ms = used_ms

    patch.set(Revival, "finish", old)


def _left_long_ago(patch: Patch) -> None:
    left = removal.consumer_left

    def unnoticed(broker: Broker, consumer: kernel.Consumer) -> None:
        queue: Queue = consumer.queue.owner
        used_ms = queue.used_ms
        left(broker, consumer)
        queue.used_ms = used_ms

    for module in (removal, on_basic):
        patch.set(module, "consumer_left", unnoticed)


PLANTED_BUGS: Final = (
    PlantedBug(
        "delayed-forgotten", "Delayed messages that are restored from the log are never delivered.", _forget_due
    ),
    PlantedBug("delayed-due-at-once", "Delayed messages from a snapshot are delivered at once.", _due_at_once),
    PlantedBug("delayed-again", "A delayed message is routed and also stays in the delayed exchange.", _not_withdrawn),
    PlantedBug("delay-from-restart", "A restart starts all delays anew.", _delay_begins_again),
    PlantedBug("deadline-not-kept", "Messages from a snapshot never expire.", _deadlines_not_kept),
    PlantedBug(
        "expiration-misread",
        "The broker drops the last digit of an expiration that is not in its plain form.",
        _digit_lost,
    ),
    PlantedBug("dead-letter-dies", "A dead letter keeps the expiration by which it expired.", _dies_again),
    PlantedBug("consumed-queue-expires", "A queue expires although it has a consumer.", _expire_used),
    PlantedBug("expiry-looked-at-once", "A queue that was in use when it was due to expire never expires.", _look_once),
    PlantedBug(
        "expires-after-takeover",
        "After a restart or a takeover a queue expires by the time of its declaration.",
        _not_used_since,
    ),
    PlantedBug(
        "expires-when-left", "The departure of its last consumer does not count as a use of a queue.", _left_long_ago
    ),
)
