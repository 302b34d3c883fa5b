"""The consumers of a queue: registered ones in order of priority and age, and those that may take a turn.

In a queue with a single active consumer only one takes part in the rotation; another one follows only when it leaves.
"""

from bisect import bisect_right
from typing import TYPE_CHECKING

from pandomq.kernel.plain.rotation import Rotation

if TYPE_CHECKING:
    from pandomq.kernel.plain.consumer import Consumer
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.ready import Ready


def _highest_first(consumer: "Consumer") -> int:
    return -consumer.priority


class QueueConsumers:
    """The part of a queue that handles its consumers."""

    ready: "Ready"
    deleted: bool

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.single_active = False
        self.is_active = False  # in the engine's list of queues to run
        self.rotation = Rotation()
        self._consumers: list[Consumer] = []

    def consumers(self) -> list["Consumer"]:
        return list(self._consumers)

    @property
    def consumer_count(self) -> int:
        return len(self._consumers)

    def add_consumer(self, consumer: "Consumer") -> None:
        self.engine.moves += 1
        at = bisect_right(self._consumers, -consumer.priority, key=_highest_first)
        self._consumers.insert(at, consumer)
        consumer.turn = self.rotation.join(consumer.priority)
        if not self.single_active or len(self._consumers) == 1:
            consumer.active = True
            consumer.wake()

    def remove_consumer(self, consumer: "Consumer") -> None:
        self.engine.moves += 1
        self._consumers.remove(consumer)
        self.rotation.leave(consumer.turn)
        if consumer.active and self.single_active and self._consumers:
            successor = self._consumers[0]
            successor.active = True
            successor.wake()
        consumer.active = False

    def activate(self) -> None:
        """The next deliver will run this queue."""
        if not self.is_active and not self.deleted:
            self.is_active = True
            self.engine.active_queues.append(self)

    def activate_if_ready(self) -> None:
        if self.ready.count:
            self.activate()

    def check_consumers(self) -> None:
        assert self._consumers == sorted(self._consumers, key=_highest_first)
        assert not self.single_active or sum(one.active for one in self._consumers) == min(1, len(self._consumers))
        assert self.single_active or all(one.active for one in self._consumers)
        assert all(one.queue is self and one.registered for one in self._consumers)
        for one in self._consumers:
            one.check()
        self.rotation.check()
