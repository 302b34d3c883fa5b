"""Consumers that share a queue: a single active consumer, or consumers with one message at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicNack,
    BasicQos,
    ConfirmSelect,
    Method,
)
from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.publisher import MessageOptions, Publisher
from pandomq.sim.queues import PROOF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.sim.checkers.root_time import RootTime
    from pandomq.sim.checkers.turns import PrefetchKept
    from pandomq.sim.ledger import SentMessage
    from pandomq.sim.network.cable import Cable
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

STAY_MS: Final = (40, 400)
AWAY_MS: Final = (0, 120)
LAST_MESSAGES: Final = 8


class SteadyPublisher(Publisher):
    """All its messages are kept; it continues for a while after the faults, so that consumers can take turns."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, wanted: int) -> None:
        super().__init__(scene, name, [kind], "", wanted)
        self._burst_max = min(self._burst_max, 4)
        self._think_ms = self.random.choice((5, 20, 60))

    def form(self) -> MessageOptions:
        return MessageOptions(filling=bytes(self.random.choice((0, 30, 900))), persistent=True)

    def end_wish(self) -> None:
        super().end_wish()
        self._wanted += LAST_MESSAGES


class SingleConsumer(ConsumingClient):
    """A consumer of a queue with a single active consumer. It cancels now and then, and registers again behind the
    others."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, time: RootTime, *, stays: bool) -> None:
        super().__init__(scene, name, kind)
        self._gets = False
        self._prefetch = self.random.choice((1, 4, 20))
        self._think_ms = self.random.choice((0, 3, 30))
        self._stays = stays
        """When the faults are over it does not cancel any more; the others cancel, and do not register again."""
        self._time = time
        self._ending = False
        self._is_consuming = False
        """Whether it received consume-ok."""
        self.turn = 0
        self.cancelling = False
        """Whether it has requested to cancel."""

    def end_wish(self) -> None:
        self._time.begin_calm()
        self._ending = True
        if self._stays and self.ready and not self._is_consuming:
            self._begin_turn()
        elif not self._stays:
            self.scene.agenda.after(self.random.randint(*STAY_MS), self._cancel_for_good)

    def _cancel_for_good(self) -> None:
        if self.ready and self._is_consuming and not self.cancelling:
            self._cancel()

    def opened(self) -> None:
        super().opened()
        self._begin(self.turn + 1)

    def _begin(self, turn: int) -> None:
        self.turn = turn
        self.cancelling = False
        self._is_consuming = True

    def _begin_turn(self) -> None:
        if self._is_consuming:
            return
        self._begin(self.turn + 1)
        self.send(BasicConsume(self._kind.name, self._kind.name))

    def _cancel(self) -> None:
        self.cancelling = True
        self.send(BasicCancel(self._kind.name))

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicConsumeOk():
                cable, turn = self.cable, self.turn
                self.scene.agenda.after(self.random.randint(*STAY_MS), lambda: self._stayed(cable, turn))
            case BasicCancelOk():
                self._is_consuming = False
                if not self._ending or self._stays:
                    cable = self.cable
                    self.scene.agenda.after(self.random.randint(*AWAY_MS), lambda: self._come_again(cable))
            case BasicDeliver() if not self._is_consuming:
                raise self.unexpected(method, " after it had cancelled")
            case _:
                super().method(method, body)

    def _stayed(self, cable: Cable | None, turn: int) -> None:
        is_same = self.cable is cable and self.ready and self.turn == turn and not self.cancelling
        if is_same and not (self._ending and self._stays):
            self._cancel()

    def _come_again(self, cable: Cable | None) -> None:
        if self.cable is cable and self.ready and not (self._ending and not self._stays):
            self._begin_turn()


class FrugalConsumer(ConsumingClient):
    """Holds one message at a time: for each consumer, or for all consumers of its channel."""

    def __init__(self, scene: Scene, name: str, kinds: Sequence[QueueKind], checker: PrefetchKept) -> None:
        super().__init__(scene, name, kinds[0])
        self._kinds = kinds
        self._checker = checker
        self._gets = False
        self._multiple = False
        self._think_ms = self.random.choice((2, 40, 800))
        """The longest value outlasts a change of the root."""

    def end_wish(self) -> None:
        self._think_ms = min(self._think_ms, 20)

    def opened(self) -> None:
        self._forget_deliveries()
        assert self.cable is not None
        self._checker.limit(self.cable, 1)
        self.send(ConfirmSelect())
        for kind in (PROOF, *self._kinds):
            self.declare(kind)
        self.send(BasicQos(prefetch_count=1, global_=len(self._kinds) > 1))
        self.send(*(BasicConsume(kind.name, kind.name) for kind in self._kinds))

    def method(self, method: Method, body: bytes) -> None:
        if isinstance(method, BasicDeliver):
            # With one message at a time, the queue of the delivery is known.
            self._kind = next(kind for kind in self._kinds if kind.name == method.consumer_tag)
        super().method(method, body)

    def closed(self, cable: Cable) -> None:
        self._checker.left(cable)
        super().closed(cable)

    def send(self, *methods: Method) -> None:
        assert self.cable is not None
        settling = sum(isinstance(method, BasicNack) for method in methods)
        if settling:
            self._checker.settled(self.cable, settling)
        super().send(*methods)

    def _ack(self, chosen: list[tuple[int, SentMessage]]) -> None:
        assert self.cable is not None
        self._checker.settled(self.cable, len(chosen))
        super()._ack(chosen)
