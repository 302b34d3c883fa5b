"""Receives broadcasts: it has a private queue on its own broker, bound to an exchange that all brokers have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    ConfirmSelect,
    ExchangeDeclare,
    ExchangeDeclareOk,
    Method,
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
)
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.publisher import Publisher, Publishing

if TYPE_CHECKING:
    from pandomq.sim.cluster.checkers.subscriptions import Subscription, SubscriptionsKept
    from pandomq.sim.scene import Scene

NEWS: Final = ExchangeDeclare("news", "fanout", durable=True)


class Subscriber(SimulatedClient):
    def __init__(self, scene: Scene, name: str, checker: SubscriptionsKept) -> None:
        super().__init__(scene, name)
        self.subscribes = True
        self._checker = checker
        self._subscription: Subscription | None = None

    @property
    def content(self) -> bool:
        return self._subscription is not None and not self._checker.missing(self._subscription)

    @property
    def listens(self) -> bool:
        return self._subscription is not None and self._subscription.is_known

    def begin_anew(self) -> None:
        assert self._subscription is not None
        self._checker.begin_anew(self._subscription)

    def opened(self) -> None:
        self.send(NEWS, QueueDeclare("", exclusive=True))

    def disconnected(self) -> None:
        self._subscription = None

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case QueueDeclareOk(queue):
                self.send(QueueBind(queue, NEWS.exchange, ""), BasicConsume(queue, self.name, no_ack=True))
            case BasicConsumeOk():
                assert self.cable is not None
                self._subscription = self._checker.begin(self.name, self.cable)
            case BasicDeliver():
                if self._subscription is not None:
                    self._checker.heard(self._subscription, self.scene.ledger.message_of(body))
            case ExchangeDeclareOk() | QueueBindOk():
                pass
            case _:
                raise self.unexpected(method)


class Announcer(Publisher):
    """Publishes broadcasts."""

    def __init__(self, scene: Scene, name: str, wanted: int) -> None:
        super().__init__(scene, name, [], NEWS.exchange, wanted)

    def opened(self) -> None:
        self._publishing = Publishing(self)
        self._unconfirmed.clear()
        self.send(ConfirmSelect(), NEWS)

    def method(self, method: Method, body: bytes) -> None:
        if isinstance(method, ExchangeDeclareOk):
            self._later()
        else:
            super().method(method, body)
