"""Publishes decided batches, part by part, on the root.

A part leaves its attempt's queue and its messages enter theirs in one batch of the broker, so in one entry of the log:
the next root continues with the next part. An attempt without further parts is deleted in the same entry, and the
decision is finished with the last one. One part per batch, so that clients are served in between; and only a few
uncommitted ones, so that the log does not get more than it can take. Messages that no queue takes are counted for their
query, at this root and while it runs.

An unexpected exception belongs to no client here. If state may have changed, the broker restarts its state, and tries
again. A batch that fails several times would make each root restart again and again. So the broker sets its query
aside until the process ends: nothing more of it is published, and its commits are refused. The log keeps the decision
and the parts, so that another root, or a mended broker, continues with the next part.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pandomq import kernel
from pandomq.broker.containment import StateInDoubt
from pandomq.broker.log.commands import DecideBatch, FinishBatch
from pandomq.broker.queues.removal import delete_queue
from pandomq.broker.staging.decisions import NOBODY, Key, key_of
from pandomq.broker.staging.frames import channel_of, end, publishes_of
from pandomq.errors import ConnectionFault, internal_error
from pandomq.limits import (
    STAGED_FAILED_BATCHES_MAX,
    STAGED_FAILURES_MAX,
    STAGED_PARTS_UNCOMMITTED_MAX,
    STAGED_UNROUTABLE_QUERIES_MAX,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.queues.queue import Queue

OnFailed = Callable[[ConnectionFault], None]


class UnroutableCount(NamedTuple):
    """Messages of a query whose queue or exchange no longer existed when they were published at this root."""

    total: int
    batch: int
    """The last batch that had any."""
    in_batch: int


class Expansion:
    __slots__ = (
        "_awaited",
        "_awaited_since",
        "_broker",
        "_channel",
        "_current",
        "_done",
        "_failures",
        "_uncommitted",
        "_waiting",
        "part_count",
        "unroutable",
        "unroutable_count",
    )

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._current: DecideBatch | None = None
        """The batch that is being published."""
        self._channel: Channel | None = None
        """The channel that publishes it."""
        self._done = 0
        """The number of its published attempts."""
        self._awaited: kernel.Queue | None = None
        """The queue whose next part is on the disk, and was requested."""
        self._awaited_since = 0
        """How often publishes had been held back when that part was requested."""
        self._uncommitted = 0
        """Parts that were published, and may still be lost."""
        self._waiting: dict[tuple[str, str, str, int], list[tuple[Callable[[], None], OnFailed]]] = {}
        self._failures: dict[tuple[str, str, str, int], int] = {}
        """Of batches whose publishing raised unexpected exceptions in this process: how often."""
        self.part_count = 0
        """The number of published parts since the broker started."""
        self.unroutable_count = 0
        """Messages that no queue took, since then."""
        self.unroutable: OrderedDict[Key, UnroutableCount] = OrderedDict()
        """The same of the last queries that had any."""

    def unroutable_of(self, vhost: str, user: str, query: str, batch: int) -> int:
        found = self.unroutable.get((vhost, user, query))
        return 0 if found is None or found.batch != batch else found.in_batch

    def call_when_done(self, decided: DecideBatch, on_done: Callable[[], None], on_failed: OnFailed) -> None:
        """Calls back when all of it is published, and committed, or when its query is set aside."""
        self._waiting.setdefault((*key_of(decided), decided.batch), []).append((on_done, on_failed))

    def inherit(self, former: "Expansion") -> None:
        """This broker replaces one of the same process that restarted its state."""
        self._failures.update(former._failures)

    def check(self, vhost: str, user: str, query: str) -> None:
        """Raises ConnectionFault (541) if the query is set aside."""
        for key in ((vhost, user, query), (vhost, NOBODY, query)) if self._failures else ():
            if key in self._set_aside():
                raise _unpublished(key)

    def _set_aside(self) -> set[Key]:
        return {at[:3] for at, count in self._failures.items() if count >= STAGED_FAILURES_MAX}

    def _next_batch(self) -> DecideBatch | None:
        """The batches of a query are published in order."""
        batches = self._broker.state.staged.open
        if not self._failures:
            return next(iter(batches.values()), None)
        set_aside = self._set_aside()
        return next((decided for at, decided in batches.items() if at[:3] not in set_aside), None)

    @property
    def is_ready(self) -> bool:
        """`turn` would have an effect. This is asked for each batch, and seldom is any batch open."""
        if not self._broker.state.staged.open or self._next_batch() is None:
            return bool(self._waiting)
        held = self._broker.held
        if held.publishes_wait or self._uncommitted >= STAGED_PARTS_UNCOMMITTED_MAX:
            return False
        if self._awaited is None or self._awaited.deleted or not self._awaited.head_missing:
            return True
        # While publishes were held back the part may have been fetched, and have left memory again: then it has to be
        # requested once more.
        return self._awaited_since != held.publish_wait_count

    def turn(self) -> None:
        """Within a batch: publishes the next part, if it is in memory. Raises StateInDoubt."""
        decided = self._next_batch()
        changes = self._broker.changes
        try:
            self._publish_next(decided)
        except Exception as error:
            if decided is None:
                raise
            self._failed(decided, error, changes)

    def _publish_next(self, decided: DecideBatch | None) -> None:
        if decided is None or decided is not self._current:
            self._turn_to(decided)
        if decided is None:
            return
        queue = self._next_attempt(decided)
        if queue is None:
            self._finish(decided)
            return
        if self._channel is None:
            self._channel = channel_of(self._broker, queue.vhost, queue.vhost.access_of_brokers(), queue.user)
        self._channel.client.user = queue.user
        taken = queue.kernel.take(self._channel.kernel, True, self._broker.now_ms)
        self._awaited = queue.kernel if taken is None and queue.kernel.head_missing else None
        if self._awaited is not None:
            self._awaited_since = self._broker.held.publish_wait_count
            return
        self._broker.state.attempts.resized(queue)
        left = 0
        if taken is not None:
            _, _, part, left = taken
            run = publishes_of(self._broker, part.body)
            if run is not None:
                before = self._lost_count()
                self._broker.engine.publish(self._channel.client.session, run, self._broker.now_ms)
                self._count_unroutable(decided, self._lost_count() - before)
            self.part_count += 1
            self._uncommitted += 1
            self._broker.held.call_when_committed(self._committed)
        if not left:
            delete_queue(self._broker, queue)
            if self._next_attempt(decided) is None:
                self._finish(decided)

    def _failed(self, decided: DecideBatch, error: Exception, changes: int) -> None:
        """`changes` were counted before. Raises StateInDoubt."""
        key = key_of(decided)
        at = (*key, decided.batch)
        count = self._failures[at] = self._failures.pop(at, 0) + 1
        if len(self._failures) > STAGED_FAILED_BATCHES_MAX:
            del self._failures[next(iter(self._failures))]
        cause = error.__cause__ if isinstance(error, StateInDoubt) else error
        if cause is not None:
            cause.add_note(
                f"The broker was publishing {_named(key)}, batch {decided.batch} (failure {count} of "
                f"{STAGED_FAILURES_MAX}): "
                + ("it tries again." if count < STAGED_FAILURES_MAX else "it publishes nothing more of this query.")
            )
        self._current, self._channel, self._done, self._awaited = None, None, 0, None
        self._broker.containment.note(error, changes)
        if count < STAGED_FAILURES_MAX:
            return
        for waiting in [waiting for waiting in self._waiting if waiting[:3] == key]:
            for _, on_failed in self._waiting.pop(waiting):
                self._broker.held.call_when_committed(partial(on_failed, _unpublished(key)))

    def _lost_count(self) -> int:
        return self._broker.engine.unroutable + self._broker.faults.passed_over

    def _count_unroutable(self, decided: DecideBatch, count: int) -> None:
        if not count:
            return
        self.unroutable_count += count
        key = key_of(decided)
        known = self.unroutable.pop(key, UnroutableCount(0, decided.batch, 0))
        in_batch = count + (known.in_batch if known.batch == decided.batch else 0)
        self.unroutable[key] = UnroutableCount(known.total + count, decided.batch, in_batch)
        if len(self.unroutable) > STAGED_UNROUTABLE_QUERIES_MAX:
            self.unroutable.popitem(last=False)

    def _committed(self) -> None:
        self._uncommitted -= 1

    def _turn_to(self, decided: DecideBatch | None) -> None:
        """The last one is done, or was deleted with its vhost: then nothing has to wait for it any more."""
        broker = self._broker
        if self._channel is not None:
            end(self._channel, broker.now_ms)
        self._current, self._channel, self._done, self._awaited = decided, None, 0, None
        for key in [key for key in self._waiting if key not in broker.state.staged.open]:
            for on_done, _ in self._waiting.pop(key):
                broker.held.call_when_committed(on_done)

    def _next_attempt(self, decided: DecideBatch) -> "Queue | None":
        queues = self._broker.state.vhosts[decided.vhost].inner_queues
        while self._done < len(decided.attempts):
            queue = queues.get(decided.attempts[self._done])
            if queue is not None:
                return queue
            self._done += 1
        return None

    def _finish(self, decided: DecideBatch) -> None:
        self._broker.log(FinishBatch(decided.vhost, decided.query, decided.batch, decided.user))
        self._failures.pop((*key_of(decided), decided.batch), None)
        self._turn_to(None)


def _named(key: Key) -> str:
    vhost, user, query = key
    return f"query '{query}' of user '{user}' in vhost '{vhost}'"


def _unpublished(key: Key) -> ConnectionFault:
    return internal_error(
        f"the broker failed {STAGED_FAILURES_MAX} times to publish a batch of {_named(key)}: its log has the "
        "tracebacks. It keeps the batch, and tries again when it is started again, or when another broker is the root"
    )
