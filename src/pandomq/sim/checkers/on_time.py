"""Timed events happen at their time: not before, not long after it, and once.

They are delayed messages, and messages that expire and go to the dead letters. The root's clock counts: a message was
published after its publisher sent it, and before its confirm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, SentMessage, WorldLedger

if TYPE_CHECKING:
    from pandomq.sim.checkers.root_time import RootTime
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.cable import Cable

PROMISE: Final = "messages are on time"
LATE_MS: Final = 300
"""The largest delay of an undisturbed root, including the way to the client through another broker."""
SLIP_MS: Final = 300
"""The largest difference by which the clock of a new root may be behind that of the previous one, which it knows from
the log and from heartbeats."""


@dataclass(slots=True, eq=False)
class _Wait:
    queue: str
    """The queue that receives the message at its time."""
    life: int
    """The life of the root to which it was sent; 0 if it went through another broker."""
    earliest_ms: int
    latest_ms: int | None = None
    """The latest time of its event; known when it is confirmed."""
    wait_ms: int = 0


@dataclass(slots=True, eq=False)
class _Line:
    """A queue in which a message expires only after all earlier ones: messages expire at its head only."""

    horizon_ms: int = 0
    """The time at which the last message expires whose publish is certain."""
    untimed: list[SentMessage] = field(default_factory=list)
    """The messages that were sent since, in order."""


class OnTime(Checker):
    def __init__(self, ledger: WorldLedger, time: RootTime) -> None:
        super().__init__(ledger)
        self._time = time
        self._waits: dict[SentMessage, _Wait] = {}
        self._lines: dict[str, _Line] = {}
        """By name: the queues in which messages wait before they come to another queue."""
        self.ready_ms: dict[str, int] = {}
        """By queue: the time since which it has a consumer that takes all messages, in the world's time."""

    def expect(self, message: SentMessage, queue: str, wait_ms: int, cable: Cable | None, *, in_line: str = "") -> None:
        """The message is about to be published. With `in_line` it also waits until all earlier messages of this queue
        have expired."""
        now = self._time.now(cable)
        life = 0 if cable is None or cable.proxied or now is None else now.life
        earliest_ms = 0 if now is None else now.at_ms + wait_ms
        self._waits[message] = _Wait(queue, life, earliest_ms, wait_ms=wait_ms)
        if in_line:
            self._lines.setdefault(queue, _Line()).untimed.append(message)

    def confirmed(self, message: SentMessage, machine: Machine) -> None:
        wait = self._waits.get(message)
        now = self._time.now(None)
        if wait is None or now is None:
            return
        line = self._lines.get(wait.queue)
        wait.latest_ms = now.at_ms + wait.wait_ms
        if line is not None:
            wait.latest_ms = max(wait.latest_ms, self._horizon_ms(line, message, now.at_ms))

    def _horizon_ms(self, line: _Line, message: SentMessage, now_ms: int) -> int:
        """Returns the time at which the last message expires that was sent before this one. Each of them was published
        by now, or will not be in front of this one, whether it was confirmed or not. The time of its publish is not
        known: the broker may have been paused, or about to stop."""
        if message in line.untimed:
            count = line.untimed.index(message) + 1
            waits_ms = [self._waits[one].wait_ms for one in line.untimed[:count]]
            line.horizon_ms = max(line.horizon_ms, now_ms + max(waits_ms))
            del line.untimed[:count]
        return line.horizon_ms

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        message, wait = delivery.message, self._waits.get(delivery.message)
        if wait is None or delivery.queue != wait.queue or delivery.place in self.ledger.emitted:
            return
        cable: Cable = delivery.connection  # type: ignore[assignment]
        now = self._time.now(cable)
        if now is None:
            return
        slip_ms = 0 if wait.life == now.life else SLIP_MS if not wait.life else 0
        if now.at_ms < wait.earliest_ms - slip_ms:
            raise BrokenPromise(
                PROMISE, f"{message} arrived in {wait.queue} {wait.earliest_ms - now.at_ms} ms before its time"
            )
        calm_ms = min(self._time.undisturbed_ms(now.life), machine.world_ms - self.ready_ms.get(wait.queue, 1 << 60))
        late_ms = 0 if wait.latest_ms is None else now.at_ms - wait.latest_ms
        if min(late_ms, calm_ms) > LATE_MS:
            raise BrokenPromise(PROMISE, f"{message} arrived in {wait.queue} {late_ms} ms after its time")

    def all_came(self, queue: str) -> bool:
        """Whether all confirmed messages that belong to this queue were delivered."""
        emitted = self.ledger.emitted
        return all(
            (queue, message) in emitted
            for message, wait in self._waits.items()
            if message.confirmed and wait.queue == queue
        )


class NeverStale(Checker):
    """An expired message is not delivered, and no message is removed before it expires."""

    def __init__(self, ledger: WorldLedger, time: RootTime, queue: str) -> None:
        super().__init__(ledger)
        self._time = time
        self._queue = queue
        self._lives_ms: dict[SentMessage, int] = {}
        self._latest_ms: dict[SentMessage, int] = {}
        """The latest time of expiration, by the clock of the root that confirmed the message or of a later one."""

    def expect(self, message: SentMessage, expiration_ms: int) -> None:
        """The message is about to be published."""
        self._lives_ms[message] = expiration_ms

    def confirmed(self, message: SentMessage, machine: Machine) -> None:
        now = self._time.now(None)
        if message in self._lives_ms and now is not None:
            self._latest_ms[message] = now.at_ms + self._lives_ms[message]

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        latest_ms = self._latest_ms.get(delivery.message)
        cable: Cable = delivery.connection  # type: ignore[assignment]
        # A message that another broker forwarded was valid when it left the root.
        if latest_ms is None or delivery.queue != self._queue or cable.proxied:
            return
        if machine.broker_ms > latest_ms:
            late_ms = machine.broker_ms - latest_ms
            raise BrokenPromise(PROMISE, f"{delivery.message} was delivered {late_ms} ms after its time was over")

    def finished(self, machine: Machine) -> None:
        left = set(self.ledger.left.get(self._queue, ()))
        for message, expiration_ms in self._lives_ms.items():
            # If the message went through another broker, it is not known which root accepted it, and by which clock.
            early = message.life and machine.broker_ms < message.sent_ms + expiration_ms
            settled = (self._queue, message) in self.ledger.settled
            if early and message.confirmed and message.persistent and not settled and message not in left:
                raise BrokenPromise(PROMISE, f"{message} is gone from {self._queue} before its time was over")
