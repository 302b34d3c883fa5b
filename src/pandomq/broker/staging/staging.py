"""Staging on the root: takes parts in, decides batches, and has them published.

    stage      a part of an attempt at a partition of a batch: it is kept in an inner queue, invisible to clients
    commit     decides: these attempts make up the batch. One entry of the log has it; all other attempts are deleted
    drop       attempts that will not be committed; without it they are deleted after a long time without requests

A query is a name of a user in a vhost: another user's query of the same name is another query. All requests may be
repeated, while they are under way, at the next root, or later: parts are numbered, and batches rise. So a batch is
published once or not at all. Published messages appear part by part, in order (see `expansion`); the client that sent
the commit gets its answer when all of it is committed.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq import kernel
from pandomq.broker.administration.rights import DATA, SOME_EXCHANGE, Operation
from pandomq.broker.log.commands import DecideBatch, DeclareQueue
from pandomq.broker.queues.removal import delete_queue
from pandomq.broker.staging.decisions import NOBODY, Key, key_of
from pandomq.broker.staging.expansion import Expansion, OnFailed
from pandomq.broker.staging.frames import check
from pandomq.broker.staging.names import StagingAttempt
from pandomq.errors import ChannelFault, access_refused, not_found, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.limits import (
    STAGED_ATTEMPTS_MAX,
    STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX,
)
from pandomq.properties import Properties, encode_header

if TYPE_CHECKING:
    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.broker import Broker
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost

_NOWHERE: Final = kernel.routing_of("", "")


class Chosen(NamedTuple):
    """A commit's choice for one partition."""

    partition: int
    attempt: str
    parts: int


class Staging:
    __slots__ = ("_arguments", "_broker", "expansion")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.expansion = Expansion(broker)
        self._arguments = encode_table({"x-expires": broker.limits.tables.staged_left_alone_ms})
        """The arguments for an attempt's queue."""

    # All of these are called outside of a batch; the next one, which may be empty, writes their changes to the log.

    def stage(
        self,
        vhost: "Vhost",
        access: "VhostAccess",
        attempt: StagingAttempt,
        part: int,
        frames: bytes,
        on_done: Callable[[bool], None],
        now_ms: int,
        *,
        routed: bool = False,
    ) -> None:
        """`on_done` is called when the part is committed; True: the batch is decided already, and nothing was kept.
        With `routed` every message must have a queue that takes it now. Raises Fault."""
        broker = self._begin(now_ms)
        _demand_writer(vhost, access, DATA["stage"])
        if attempt.batch <= broker.state.staged.last_batch(vhost.name, access.user, attempt.query):
            broker.held.call_when_committed(lambda: on_done(True))
            return
        queue = vhost.inner_queues.get(attempt.queue_name)
        # The queue of an attempt that is being published may be gone already.
        if self._is_chosen(vhost, attempt) if queue is None else queue.user != access.user:
            raise _of_another_user(attempt.name)
        count = 0 if queue is None else _part_count(queue)
        if part > count:
            raise precondition_failed(
                f"part {part} of attempt '{attempt.name}' is not the next one: expected part {count}"
            )
        if part == count:
            check(broker, vhost, access, frames, routed=routed)
            self._demand_room(access.user, len(frames), new=queue is None)
            queue = self._declared(vhost, access.user, attempt) if queue is None else queue
            header = encode_header(len(frames), Properties(delivery_mode=2))
            message = kernel.Message(_NOWHERE, header, frames)
            broker.engine.enqueue(None, message, [queue.kernel], 0, broker.now_ms)
            broker.state.attempts.resized(queue)
        assert queue is not None
        queue.used_ms = broker.now_ms
        broker.held.call_when_committed(lambda: on_done(False))

    def commit(
        self,
        vhost: "Vhost",
        access: "VhostAccess",
        query: str,
        batch: int,
        chosen: Sequence[Chosen],
        on_done: Callable[[], None],
        on_failed: OnFailed,
        now_ms: int,
    ) -> None:
        """`on_done` is called when all of the batch is published and committed, now or before; `on_failed` if the
        broker cannot publish it. Raises ChannelFault and ConnectionFault (541)."""
        broker = self._begin(now_ms)
        user = access.user
        _demand_writer(vhost, access, DATA["commit"])
        decisions = broker.state.staged
        if batch <= decisions.last_batch(vhost.name, user, query):
            decided = decisions.find_open(vhost.name, user, query, batch)
            if decided is None:
                broker.held.call_when_committed(on_done)
            else:
                self.expansion.check(vhost.name, user, query)
                self.expansion.call_when_done(decided, on_done, on_failed)
            return
        self.expansion.check(vhost.name, user, query)
        names = [self._complete(vhost, user, query, batch, one) for one in sorted(chosen) if one.parts]
        if len({one.partition for one in chosen}) < len(chosen):
            raise precondition_failed("only one attempt of a partition can be committed")
        for queue in self._others(vhost, user, query, batch, set(names)):
            delete_queue(broker, queue)
        forgotten = self._forgotten((vhost.name, user, query))
        unowned = (vhost.name, NOBODY, query)
        if decisions.knows(unowned) and unowned not in forgotten and not decisions.is_open(unowned):
            # This user continues the query of an earlier version: no other user may take it for its own.
            forgotten.append(unowned)
        decided = DecideBatch(vhost.name, query, batch, names, broker.now_ms, [], user, forgotten)
        broker.log(decided)
        if names:
            self.expansion.call_when_done(decided, on_done, on_failed)
        else:
            broker.held.call_when_committed(on_done)

    def drop(
        self,
        vhost: "Vhost",
        user: str,
        attempts: Sequence[StagingAttempt],
        on_done: Callable[[], None],
        now_ms: int,
    ) -> None:
        """Drops attempts of this user's query. Those that do not exist, or are being published, are ignored."""
        broker = self._begin(now_ms)
        for attempt in attempts:
            queue = vhost.inner_queues.get(attempt.queue_name)
            if queue is not None and queue.user == user and not self.keeps(queue):
                delete_queue(broker, queue)
        broker.held.call_when_committed(on_done)

    def last_batch(self, vhost: "Vhost", user: str, query: str, on_done: Callable[[int], None], now_ms: int) -> None:
        """The last decided batch of this user's query, once the decision is committed; -1 if there is none."""
        broker = self._begin(now_ms)
        batch = broker.state.staged.last_batch(vhost.name, user, query)
        broker.held.call_when_committed(lambda: on_done(batch))

    def keeps(self, queue: "Queue") -> bool:
        """The decision is made to publish its parts, however long that takes."""
        return queue.inner and self._broker.state.staged.chose(queue.vhost.name, queue.name)

    def _is_chosen(self, vhost: "Vhost", attempt: StagingAttempt) -> bool:
        return self._broker.state.staged.chose(vhost.name, attempt.queue_name)

    def _begin(self, now_ms: int) -> "Broker":
        self._broker.now_ms = now_ms - self._broker.clock_ahead_ms
        return self._broker

    def _demand_room(self, user: str, size_bytes: int, *, new: bool) -> None:
        """Checks the room for a part, perhaps of a new attempt. Raises ChannelFault (406)."""
        limits, attempts = self._broker.limits, self._broker.state.attempts
        if new and attempts.count >= STAGED_ATTEMPTS_MAX:
            raise precondition_failed(
                f"{attempts.count} attempts are not committed: at most {STAGED_ATTEMPTS_MAX} are allowed"
            )
        own_count = attempts.count_of(user)
        if new and own_count >= limits.staged_attempts_per_user_max > 0:
            raise precondition_failed(
                f"user '{user}' has {own_count} attempts that are not committed: "
                f"staged_attempts_per_user_max ({limits.staged_attempts_per_user_max}) is reached"
            )
        own_bytes = attempts.bytes_of(user) + size_bytes
        if own_bytes > limits.staged_per_user_bytes_max > 0:
            raise precondition_failed(
                f"user '{user}' would have staged {own_bytes} bytes that are not committed: "
                f"staged_per_user_bytes_max is {limits.staged_per_user_bytes_max}"
            )

    def _declared(self, vhost: "Vhost", user: str, attempt: StagingAttempt) -> "Queue":
        broker = self._broker
        name, queue_id = attempt.queue_name, broker.state.next_queue_id
        broker.issue(
            DeclareQueue(vhost.name, name, queue_id, True, False, self._arguments, user, broker.now_ms, inner=True)
        )
        return vhost.inner_queues[name]

    def _complete(self, vhost: "Vhost", user: str, query: str, batch: int, chosen: Chosen) -> str:
        """The name of the queue that has all the parts."""
        name = StagingAttempt(batch, chosen.partition, chosen.attempt, query).queue_name
        queue = vhost.inner_queues.get(name)
        if queue is None:
            raise not_found(f"attempt '{chosen.attempt}' has staged nothing at partition {chosen.partition}")
        if queue.user != user:
            raise _of_another_user(chosen.attempt)
        if _part_count(queue) != chosen.parts or queue.kernel.ready_count != chosen.parts:
            raise precondition_failed(
                f"attempt '{chosen.attempt}' at partition {chosen.partition} has staged {_part_count(queue)} parts, "
                f"not {chosen.parts}"
            )
        return name

    def _others(self, vhost: "Vhost", user: str, query: str, through: int, chosen: Collection[str]) -> "list[Queue]":
        """Staged attempts of the query's batches up to this one that will not be published."""
        return [
            queue
            for attempt, queue in self._broker.state.attempts.of_query(vhost.name, user, query)
            if attempt.batch <= through and queue.name not in chosen and not self.keeps(queue)
        ]

    def _forgotten(self, query: Key) -> list[Key]:
        """Queries that are forgotten for a decision of this one: never this one itself, nor those that have a batch
        which is not published completely. Their batches could be published a second time. A user with too many loses
        its own."""
        decisions, now_ms = self._broker.state.staged, self._broker.now_ms
        limits, user = self._broker.limits.tables, query[1]
        is_new = not decisions.knows(query)
        remaining = len(decisions) + is_new
        too_many = decisions.count_of(user) + is_new - limits.staged_queries_per_user_max
        forgotten: dict[Key, None] = {}
        for decided in decisions.oldest_of(user) if too_many > 0 else ():
            if len(forgotten) >= min(too_many, STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX):
                break
            if key_of(decided) != query and not decisions.is_open(key_of(decided)):
                forgotten[key_of(decided)] = None
        remaining -= len(forgotten)
        for decided in decisions.oldest_first():
            must_go = remaining > limits.staged_queries_max or decided.now_ms < now_ms - limits.staged_query_age_ms
            if not must_go or len(forgotten) >= STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX:
                break
            key = key_of(decided)
            if key != query and key not in forgotten and not decisions.is_open(key):
                forgotten[key] = None
                remaining -= 1
        return list(forgotten)


def _demand_writer(vhost: "Vhost", access: "VhostAccess", operation: Operation) -> None:
    """Applies also to requests that stage nothing: names of queries and attempts are for users that may publish
    something. Raises ChannelFault (403)."""
    (right,) = operation.needs[SOME_EXCHANGE]
    if not access.allows_some(right):
        raise access_refused(
            f"write access to any exchange in vhost '{vhost.name}' refused for user '{access.user}': staging needs it"
        )


def _of_another_user(attempt: str) -> ChannelFault:
    return access_refused(f"attempt '{attempt}' belongs to another user: choose another name")


def _part_count(queue: "Queue") -> int:
    """The number of parts ever staged."""
    return queue.kernel.next_sequence - 1
