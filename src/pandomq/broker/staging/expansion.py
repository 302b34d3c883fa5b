"""Publishes decided batches, part by part, on the root.

A part leaves its attempt's queue and its messages enter theirs in one batch of the broker, so in one entry of the log:
whoever is root next goes on with the next part. An attempt that has no more parts goes in the same entry, and the
decision is done with the last one. One part a batch, so that clients are served in between; and no more than a few that
are not committed, so that the log is not given more than it can take.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.commands import DecideBatch, FinishBatch
from pandomq.broker.removal import delete_queue
from pandomq.broker.staging.frames import channel_of, end, publishes_of
from pandomq.limits import STAGED_PARTS_UNCOMMITTED_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.queue import Queue


class Expansion:
    __slots__ = ("_awaited", "_broker", "_channel", "_current", "_done", "_uncommitted", "_waiting", "part_count")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._current: DecideBatch | None = None
        """What is being published."""
        self._channel: Channel | None = None
        """That publishes it."""
        self._done = 0
        """Attempts of it that are published."""
        self._awaited: kernel.Queue | None = None
        """Whose next part is on the disk, and was asked for."""
        self._uncommitted = 0
        """Parts that were published, and may still be lost."""
        self._waiting: dict[tuple[str, str, int], list[Callable[[], None]]] = {}
        self.part_count = 0
        """Since the broker started."""

    def call_when_done(self, decided: DecideBatch, on_done: Callable[[], None]) -> None:
        """All of it is published, and committed."""
        self._waiting.setdefault((decided.vhost, decided.query, decided.batch), []).append(on_done)

    @property
    def is_ready(self) -> bool:
        """`turn` would do something."""
        if not self._broker.state.staged.open:
            return bool(self._waiting)
        if self._broker.held.publishes_wait or self._uncommitted >= STAGED_PARTS_UNCOMMITTED_MAX:
            return False
        return self._awaited is None or self._awaited.deleted or not self._awaited.head_missing

    def turn(self) -> None:
        """In a batch: the next part, if it is in memory."""
        decided = next(iter(self._broker.state.staged.open.values()), None)
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
            return
        left = 0
        if taken is not None:
            _, _, part, left = taken
            run = publishes_of(self._broker, part.body)
            if run is not None:
                self._broker.engine.publish(self._channel.client.session, run, self._broker.now_ms)
            self.part_count += 1
            self._uncommitted += 1
            self._broker.held.call_when_committed(self._committed)
        if not left:
            delete_queue(self._broker, queue)
            if self._next_attempt(decided) is None:
                self._finish(decided)

    def _committed(self) -> None:
        self._uncommitted -= 1

    def _turn_to(self, decided: DecideBatch | None) -> None:
        """The last one is done, or has gone with its vhost: then nobody has to wait for it any more."""
        broker = self._broker
        if self._channel is not None:
            end(self._channel, broker.now_ms)
        self._current, self._channel, self._done, self._awaited = decided, None, 0, None
        for key in [key for key in self._waiting if key not in broker.state.staged.open]:
            for on_done in self._waiting.pop(key):
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
        self._broker.log(FinishBatch(decided.vhost, decided.query, decided.batch))
        self._turn_to(None)
