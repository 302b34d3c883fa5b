"""Cached decisions of the broker: where messages of one exchange and key go."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue import Queue


class Plan:
    """The destinations of messages; the broker withdraws it when its routing changes."""

    __slots__ = ("queues", "valid")

    def __init__(self, queues: Sequence["Queue"]) -> None:
        self.queues: tuple[Queue, ...] = tuple(queues)
        self.valid = True

    def withdraw(self) -> None:
        # A plan may be cached for long: the cache must not keep its queues alive.
        self.valid = False
        self.queues = ()


class Routes:
    """Plans by Message.routing; cleared when it is full."""

    __slots__ = ("_capacity", "_plans")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._plans: dict[bytes, Plan] = {}

    def __len__(self) -> int:
        return len(self._plans)

    def put(self, routing: bytes, plan: Plan) -> None:
        if len(self._plans) >= self._capacity and routing not in self._plans:
            self._plans.clear()
        self._plans[routing] = plan

    def find(self, routing: bytes) -> Plan | None:
        """Returns the plan if it is still valid."""
        plan = self._plans.get(routing)
        return plan if plan is not None and plan.valid else None

    def clear(self) -> None:
        self._plans.clear()
