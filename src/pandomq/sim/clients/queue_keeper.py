"""Uses a queue with `x-expires` in every way that counts as use, or leaves it alone until it must be gone."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicGet,
    BasicGetEmpty,
    ChannelClose,
    Method,
    QueueDeclare,
    QueueDeclareOk,
)
from pandomq.sim.checkers.root_time import Moment, RootTime
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

PROMISE: Final = "a queue expires when it is not used"
NOT_FOUND: Final = 404
LATE_MS: Final = 400
"""The largest delay of a queue's expiration while no fault disturbs the root."""
CLOCKS_MAX: Final = 1.1
"""An upper bound of the speed of clocks, relative to the world's time."""
EXPIRES_MS: Final = (250, 600)
TAG: Final = "keeper"


class KeeperStage(enum.Enum):
    DECLARING = "declaring"
    ASKING = "asking"
    """A check of the queue's existence that counts as use."""
    CONSUMING = "consuming"
    CANCELLING = "cancelling"
    RESTING = "resting"


class QueueKeeper(SimulatedClient):
    def __init__(self, scene: Scene, name: str, time: RootTime, wanted: int) -> None:
        super().__init__(scene, name)
        self.subscribes = True
        self._time = time
        self._wanted = wanted
        self._queue = f"brief-{name}"
        self._expires_ms = self.random.choice(EXPIRES_MS)
        self._stage = KeeperStage.RESTING
        self._asked: Moment | None = None
        """The time of the last request to the root."""
        self._used: Moment | None = None
        """The queue was used at this time or later."""
        self._unused: Moment | None = None
        """The queue was last used at this time or earlier; None if that is not known."""
        self._shared = False
        """Another broker registered its consumer at the root, and may have lost its way to the root since: then the
        queue may have been deleted without notice."""
        self._epoch = 0
        self._asked_world_ms = self._used_world_ms = 0
        self.seen_gone = False
        """The queue expired as it should, after the faults had ended."""
        self._seen_consumed = False
        """The queue was consumed for longer than its time to live without use, after the faults had ended."""
        self.done = 0

    @property
    def content(self) -> bool:
        return self.done >= self._wanted and self.seen_gone

    def end_wish(self) -> None:
        self._time.begin_calm()
        self._wanted = self.done + 2

    def opened(self) -> None:
        # After a restart, the time without use of a queue that was used before is no longer than the new root's time of
        # service.
        if self._used is None or self.random.random() < 0.3:
            self._declare()
        else:
            self._look()

    def disconnected(self) -> None:
        # The last request may have been executed, now or later.
        self._unused = None
        self._stage = KeeperStage.RESTING

    def _now(self) -> Moment | None:
        return self._time.now(self.cable)

    def _ask(self, stage: KeeperStage, *methods: Method) -> None:
        self._stage = stage
        self._asked = self._now()
        self._asked_world_ms = self.scene.agenda.now_ms
        self.send(*methods)

    def _declare(self) -> None:
        declare = QueueDeclare(self._queue, durable=True, arguments={"x-expires": self._expires_ms})
        self._ask(KeeperStage.DECLARING, declare)

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case QueueDeclareOk() | BasicGetEmpty() | BasicCancelOk():
                self._answered()
            case BasicConsumeOk():
                assert self.cable is not None
                self._shared = self.cable.proxied
                self._used_now()
                long_ms = self._expires_ms * 3 // 2
                hold_ms = long_ms if self._tests_consumers else self.random.choice((0, long_ms))
                self.act_later(hold_ms, lambda: self._ask(KeeperStage.CANCELLING, BasicCancel(TAG)))
            case _:
                raise self.unexpected(method)

    def _used_now(self) -> None:
        self._used, self._unused = self._asked, self._now()
        self._used_world_ms = self._asked_world_ms
        self._epoch = self.scene.ledger.epoch

    def _answered(self) -> None:
        if self._stage is KeeperStage.ASKING and self._is_overdue():
            raise BrokenPromise(PROMISE, f"{self._queue} is there {self._expires_ms} ms after its last use, and later")
        self._used_now()
        if self._stage is KeeperStage.CANCELLING and self._shared and self._time.calm_ms is None:
            self._used = None
        self.done += 1
        if self._stage is KeeperStage.CANCELLING and self._tests_consumers:
            self._seen_consumed = True
            self.act_later(self._expires_ms // 10, self._look)
        elif self._tests_consumers:
            self.act_later(0, self._consume)
        else:
            self._next()

    @property
    def _tests_consumers(self) -> bool:
        """Whether its next consumer stays for longer than the queue's time to live without use. This test does not go
        through another broker, which may lose its way to the root without notice to the client."""
        cable = self.cable
        direct = cable is not None and not cable.proxied
        return self._time.calm_ms is not None and not self._seen_consumed and direct

    def _next(self) -> None:
        """Draws the next pause: mostly a short one, sometimes one after which the queue must be gone."""
        calm = self._time.calm_ms is not None
        leaves = self.random.random() < (0.6 if calm and not self.seen_gone else 0.15)
        if leaves:
            rest_ms = self._expires_ms * 12 // 10 + 2 * LATE_MS
        elif self.done >= self._wanted:
            # It has tested everything.
            self._stage = KeeperStage.RESTING
            if not self.seen_gone:
                self.act_later(50, self._next)
            return
        else:
            rest_ms = self.random.randint(0, self._expires_ms * 9 // 10)
        use = self.random.choice((self._declare, self._look, self._get, self._consume, self._consume))
        self.act_later(rest_ms, self._look if leaves else use)

    def _look(self) -> None:
        self._ask(KeeperStage.ASKING, QueueDeclare(self._queue, passive=True))

    def _get(self) -> None:
        self._ask(KeeperStage.ASKING, BasicGet(self._queue, no_ack=True))

    def _consume(self) -> None:
        self._ask(KeeperStage.CONSUMING, BasicConsume(self._queue, TAG, no_ack=True))

    def _is_overdue(self) -> bool:
        """Whether the time without use before the last request was so long that the queue should have expired, and no
        fault delayed the root."""
        asked, unused, now = self._asked, self._unused, self._now()
        if asked is None or unused is None or now is None or not asked.life == unused.life == now.life:
            return False
        rested_ms = asked.at_ms - unused.at_ms
        # The pause was also that long after the last fault.
        undisturbed_ms = self._time.undisturbed_ms(now.life) - (now.at_ms - asked.at_ms)
        return min(rested_ms, undisturbed_ms) > self._expires_ms + LATE_MS

    def channel_closed(self, method: ChannelClose) -> None:
        if method.reply_code != NOT_FOUND or self._stage in (KeeperStage.DECLARING, KeeperStage.RESTING):
            super().channel_closed(method)
        now, used = self._now(), self._used
        if now is not None and used is not None and self._epoch == self.scene.ledger.epoch:
            self._check_early(used, now)
        if self._time.calm_ms is not None:
            self.seen_gone = True
        self._used = None
        # It begins again on another channel.
        self.cut()

    def _check_early(self, used: Moment, now: Moment) -> None:
        """Checks that a queue which was used at that time or later is not gone too early."""
        if used.life == now.life:
            since_ms = used.at_ms
        elif (self._time.opened_world_ms(now.life) - self._used_world_ms) * CLOCKS_MAX >= self._expires_ms:
            # The queue may have expired before this root began to serve.
            return
        else:
            since_ms = self._time.opened_ms(now.life)
        if now.at_ms - since_ms < self._expires_ms:
            raise BrokenPromise(
                PROMISE, f"{self._queue} is gone {now.at_ms - since_ms} ms after its use, of {self._expires_ms}"
            )
