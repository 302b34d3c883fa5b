"""Staging on the root: takes parts in, decides batches, and has them published.

    stage      a part of an attempt at a partition of a batch: it is kept in an inner queue, and nobody sees it
    commit     decides: these attempts make up the batch. One entry of the log says so; all other attempts go
    drop       attempts that will not be committed; without it they go when they were left alone for long

All of it may be asked again, while it is under way, at the next root, or later: parts are numbered, and batches rise.
So a batch is published once or not at all. What is published appears part by part, in order (see `expansion`); whoever
asked for the commit hears of it when all of it is committed.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq import kernel
from pandomq.broker.commands import DecideBatch, DeclareQueue
from pandomq.broker.removal import delete_queue
from pandomq.broker.staging.expansion import Expansion
from pandomq.broker.staging.frames import check
from pandomq.broker.staging.names import PREFIX, Attempt, attempt_of
from pandomq.errors import access_refused, not_found, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.limits import (
    STAGED_ATTEMPTS_MAX,
    STAGED_LEFT_ALONE_MS,
    STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX,
    STAGED_QUERIES_MAX,
    STAGED_QUERY_AGE_MS,
)
from pandomq.properties import Properties, encode_header

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.permissions import Access
    from pandomq.broker.queue import Queue
    from pandomq.broker.vhost import Vhost

_ARGUMENTS: Final = encode_table({"x-expires": STAGED_LEFT_ALONE_MS})
_NOWHERE: Final = kernel.routing_of("", "")


class Chosen(NamedTuple):
    """What a commit says of one partition."""

    partition: int
    attempt: str
    parts: int


class Staging:
    __slots__ = ("_broker", "expansion")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.expansion = Expansion(broker)

    # All of these outside of a batch; the next one, which may be empty, writes to the log what they change.

    def stage(
        self,
        vhost: "Vhost",
        access: "Access",
        attempt: Attempt,
        part: int,
        frames: bytes,
        on_done: Callable[[bool], None],
        now_ms: int,
    ) -> None:
        """`on_done` hears when the part is committed; True: the batch is decided already, and nothing was kept. Raises
        Fault."""
        broker = self._begin(now_ms)
        if attempt.batch <= broker.state.staged.last_batch(vhost.name, attempt.query):
            broker.held.call_when_committed(lambda: on_done(True))
            return
        queue = vhost.inner_queues.get(attempt.queue_name)
        if queue is not None and queue.user != access.user:
            raise access_refused(f"attempt '{attempt.name}' is another user's")
        count = 0 if queue is None else _part_count(queue)
        if part > count:
            raise precondition_failed(f"part {part} of attempt '{attempt.name}' comes before part {count}")
        if part == count:
            check(broker, vhost, access, frames)
            queue = self._declared(vhost, access.user, attempt) if queue is None else queue
            header = encode_header(len(frames), Properties(delivery_mode=2))
            message = kernel.Message(_NOWHERE, header, frames)
            broker.engine.enqueue(None, message, [queue.kernel], 0, broker.now_ms)
        assert queue is not None
        queue.used_ms = broker.now_ms
        broker.held.call_when_committed(lambda: on_done(False))

    def commit(
        self,
        vhost: "Vhost",
        user: str,
        query: str,
        batch: int,
        chosen: Sequence[Chosen],
        on_done: Callable[[], None],
        now_ms: int,
    ) -> None:
        """`on_done` hears when all of the batch is published and committed, now or before. Raises ChannelFault."""
        broker = self._begin(now_ms)
        decisions = broker.state.staged
        if batch <= decisions.last_batch(vhost.name, query):
            decided = decisions.open.get((vhost.name, query, batch))
            if decided is None:
                broker.held.call_when_committed(on_done)
            else:
                self.expansion.call_when_done(decided, on_done)
            return
        names = [self._complete(vhost, user, query, batch, one) for one in sorted(chosen) if one.parts]
        if len({one.partition for one in chosen}) < len(chosen):
            raise precondition_failed("a partition has one attempt that counts")
        for queue in self._others(vhost, query, batch, {*names, *decisions.chosen(vhost.name)}):
            delete_queue(broker, queue)
        decided = DecideBatch(vhost.name, query, batch, names, broker.now_ms, self._forgotten())
        broker.log(decided)
        if names:
            self.expansion.call_when_done(decided, on_done)
        else:
            broker.held.call_when_committed(on_done)

    def drop(
        self,
        vhost: "Vhost",
        user: str,
        attempts: Sequence[Attempt],
        on_done: Callable[[], None],
        now_ms: int,
    ) -> None:
        """Those that are not there, are another user's, or are being published, are passed over."""
        broker = self._begin(now_ms)
        for attempt in attempts:
            queue = vhost.inner_queues.get(attempt.queue_name)
            if queue is not None and queue.user == user and not self.keeps(queue):
                delete_queue(broker, queue)
        broker.held.call_when_committed(on_done)

    def last_batch(self, vhost: "Vhost", query: str, on_done: Callable[[int], None], now_ms: int) -> None:
        """The last one that is decided, once that is committed; -1 if none is."""
        broker = self._begin(now_ms)
        batch = broker.state.staged.last_batch(vhost.name, query)
        broker.held.call_when_committed(lambda: on_done(batch))

    def keeps(self, queue: "Queue") -> bool:
        """It is decided that its parts are published, however long that takes."""
        return queue.inner and queue.name in self._broker.state.staged.chosen(queue.vhost.name)

    def _begin(self, now_ms: int) -> "Broker":
        self._broker.now_ms = now_ms - self._broker.clock_ahead_ms
        return self._broker

    def _declared(self, vhost: "Vhost", user: str, attempt: Attempt) -> "Queue":
        broker = self._broker
        vhosts = broker.state.vhosts.values()
        count = sum(name.startswith(PREFIX) for known in vhosts for name in known.inner_queues)
        if count >= STAGED_ATTEMPTS_MAX:
            raise precondition_failed(
                f"there are {count} attempts that are not committed, at most {STAGED_ATTEMPTS_MAX}"
            )
        name, queue_id = attempt.queue_name, broker.state.next_queue_id
        broker.issue(DeclareQueue(vhost.name, name, queue_id, True, False, _ARGUMENTS, user, broker.now_ms, inner=True))
        return vhost.inner_queues[name]

    def _complete(self, vhost: "Vhost", user: str, query: str, batch: int, chosen: Chosen) -> str:
        """The name of the queue that has all the parts."""
        name = Attempt(batch, chosen.partition, chosen.attempt, query).queue_name
        queue = vhost.inner_queues.get(name)
        if queue is None:
            raise not_found(f"nothing is staged by attempt '{chosen.attempt}' at partition {chosen.partition}")
        if queue.user != user:
            raise access_refused(f"attempt '{chosen.attempt}' is another user's")
        if _part_count(queue) != chosen.parts or queue.kernel.ready_count != chosen.parts:
            raise precondition_failed(
                f"attempt '{chosen.attempt}' at partition {chosen.partition} has staged {_part_count(queue)} parts, "
                f"not {chosen.parts}"
            )
        return name

    def _others(self, vhost: "Vhost", query: str, through: int, chosen: set[str]) -> "list[Queue]":
        """What is staged of batches of the query, up to this one, and will not be published."""
        known = ((attempt_of(name), queue) for name, queue in vhost.inner_queues.items() if name not in chosen)
        return [
            queue
            for attempt, queue in known
            if attempt is not None and attempt.query == query and attempt.batch <= through
        ]

    def _forgotten(self) -> list[tuple[str, str]]:
        decisions, now_ms = self._broker.state.staged, self._broker.now_ms
        forgotten: list[tuple[str, str]] = []
        for decided in decisions.oldest_first():
            remaining = len(decisions) - len(forgotten)
            old = decided.now_ms < now_ms - STAGED_QUERY_AGE_MS
            if (remaining < STAGED_QUERIES_MAX and not old) or len(forgotten) >= STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX:
                break
            forgotten.append((decided.vhost, decided.query))
        return forgotten


def _part_count(queue: "Queue") -> int:
    """How many were ever staged."""
    return queue.kernel.next_sequence - 1
