"""Clients of timed messages: publishers of delayed and of expiring messages, and their consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import BasicConsumeOk, ExchangeDeclare, Method, QueueBind
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.publisher import MessageOptions, Publisher
from pandomq.sim.ledger import SentMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.sim.checkers.on_time import NeverStale, OnTime
    from pandomq.sim.checkers.root_time import RootTime
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

LATER: Final = ExchangeDeclare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"})
DELAYS_MS: Final = (0, 15, 120, 500, 1_400)
EXPIRATIONS_MS: Final = (0, 20, 120, 500, 1_200)
LIVES_MS: Final = (15, 80, 300, 100_000)
"""The last value is longer than any world."""
FILLINGS: Final = (0, 0, 40, 700)


class TimedPublisher(Publisher):
    """Publishes messages one by one or a few at a time; all of them are kept."""

    def __init__(self, scene: Scene, name: str, kinds: Sequence[QueueKind], exchange: str, wanted: int) -> None:
        super().__init__(scene, name, kinds, exchange, wanted)
        self._declares = list(kinds)
        self._burst_max = min(self._burst_max, 4)
        self._think_ms = self.random.choice((5, 40, 120))

    def filling(self) -> bytes:
        return bytes(self.random.choice(FILLINGS))


class DelayedPublisher(TimedPublisher):
    def __init__(self, scene: Scene, name: str, kind: QueueKind, checker: OnTime, wanted: int) -> None:
        super().__init__(scene, name, [kind], LATER.exchange, wanted)
        self._kind = kind
        self.topology = (LATER, QueueBind(kind.name, LATER.exchange, kind.name))
        self._checker = checker
        self._delay_ms = 0

    def form(self) -> MessageOptions:
        self._delay_ms = self.random.choice(DELAYS_MS)
        headers = {"x-delay": self._delay_ms} if self._delay_ms else None
        return MessageOptions(headers, filling=self.filling(), routing_key=self._kind.name, persistent=True)

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        self._checker.expect(message, self._kind.name, self._delay_ms, self.cable)


class MortalPublisher(TimedPublisher):
    """Each message has its own expiration, and no client consumes it: all messages become dead letters."""

    def __init__(
        self, scene: Scene, name: str, kind: QueueKind, graves: QueueKind, checker: OnTime, wanted: int
    ) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self._declares = [graves, kind]
        self._kind, self._graves = kind, graves
        self._checker = checker
        self._expiration_ms = 0

    def form(self) -> MessageOptions:
        self._expiration_ms = self.random.choice(EXPIRATIONS_MS)
        expiration = written(self._expiration_ms, self.random.random())
        return MessageOptions(expiration=expiration, filling=self.filling(), persistent=True)

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        self._checker.expect(message, self._graves.name, self._expiration_ms, self.cable, in_line=self._kind.name)


class PerishablePublisher(TimedPublisher):
    """Publishes messages with expirations of their own to a queue with consumers."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, checker: NeverStale, wanted: int) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self._checker = checker
        self._expiration_ms = 0

    def form(self) -> MessageOptions:
        self._expiration_ms = self.random.choice(LIVES_MS)
        expiration = written(self._expiration_ms, self.random.random())
        return MessageOptions(expiration=expiration, filling=self.filling(), persistent=True)

    def formed(self, message: SentMessage, form: MessageOptions | None) -> None:
        self._checker.expect(message, self._expiration_ms)


def written(expiration_ms: int, chance: float) -> str:
    """Writes the expiration: mostly in plain digits; RabbitMQ accepts a sign and leading zeros, too."""
    return f"+{expiration_ms}" if chance < 0.15 else f"00{expiration_ms}" if chance < 0.3 else str(expiration_ms)


class EagerConsumer(ConsumingClient):
    """Consumes all messages at once."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, checker: OnTime, time: RootTime) -> None:
        super().__init__(scene, name, kind)
        self._gets = False
        self._prefetch = 0
        self._returns = False
        self._think_ms = min(self._think_ms, 3)
        self._checker = checker
        self._time = time

    def end_wish(self) -> None:
        self._time.begin_calm()

    def method(self, method: Method, body: bytes) -> None:
        if isinstance(method, BasicConsumeOk):
            self._checker.ready_ms[self._kind.name] = self.scene.agenda.now_ms
        super().method(method, body)

    def disconnected(self) -> None:
        super().disconnected()
        self._checker.ready_ms.pop(self._kind.name, None)


class SlowConsumer(ConsumingClient):
    """Holds few messages at a time, so that others wait."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind) -> None:
        super().__init__(scene, name, kind)
        self._gets = False
        self.no_ack = False
        self._prefetch = self.random.choice((1, 2))
        self._think_ms = self.random.choice((30, 120, 250))
        self._multiple = False
