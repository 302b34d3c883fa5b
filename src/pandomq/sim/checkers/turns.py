"""The distribution of a queue's messages: to one consumer at a time if only one is active; no more than the
prefetch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, WorldLedger

if TYPE_CHECKING:
    from pandomq.sim.checkers.root_time import RootTime
    from pandomq.sim.clients.turns import SingleConsumer
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.cable import Cable

ONE_ACTIVE: Final = "one active consumer"
PREFETCH: Final = "no more than the prefetch"
UNDER_WAY_MS: Final = 500
"""The longest time for which deliveries of an earlier root are under way to other brokers, without faults."""


class _Turn(NamedTuple):
    client: SingleConsumer
    cable: Cable
    number: int
    life: int

    @property
    def is_over(self) -> bool:
        """Whether the client has cancelled, has lost its connection, or the broker is about to close it."""
        client, cable = self.client, self.cable
        is_here = client.cable is cable and cable.at_machine and cable.is_served and not cable.machine.stopping
        return not is_here or client.turn != self.number or client.cancelling


class OneActive(Checker):
    """At any time the messages of the queue go to one consumer; the next consumer follows when that one has left."""

    def __init__(self, ledger: WorldLedger, time: RootTime, queue: str) -> None:
        super().__init__(ledger)
        self._time = time
        self._queue = queue
        self._active: _Turn | None = None

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        if delivery.queue != self._queue:
            return
        cable: Cable = delivery.connection  # type: ignore[assignment]
        now = self._time.now(cable)
        client: SingleConsumer = cable.client  # type: ignore[assignment]
        if now is None or not hasattr(client, "turn"):
            # The client that empties all queues at the end comes after the others have gone.
            return
        turn, last = _Turn(client, cable, client.turn, now.life), self._active
        if last is None or turn == last:
            self._active = turn
            return
        unseen = cable.proxied or last.cable.proxied
        if unseen and self._time.undisturbed_ms(now.life) < UNDER_WAY_MS:
            self._active = turn
            return
        if last.life == turn.life and not last.is_over:
            raise BrokenPromise(
                ONE_ACTIVE, f"{self._queue} delivers to {client.name}, and {last.client.name} is its active consumer"
            )
        self._active = turn


class PrefetchKept(Checker):
    """No connection has more unacked messages than its prefetch allows."""

    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._unacked: Counter[Cable] = Counter()
        self._limits: dict[Cable, int] = {}

    def limit(self, cable: Cable, count: int) -> None:
        """The limit for the whole connection, from now on."""
        self._limits[cable] = count

    def settled(self, cable: Cable, count: int) -> None:
        """The client is about to settle so many deliveries."""
        self._unacked[cable] -= count

    def left(self, cable: Cable) -> None:
        self._limits.pop(cable, None)
        self._unacked.pop(cable, None)

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        cable: Cable = delivery.connection  # type: ignore[assignment]
        limit = self._limits.get(cable)
        if limit is None:
            return
        self._unacked[cable] += 1
        if self._unacked[cable] > limit:
            raise BrokenPromise(
                PREFETCH, f"{cable.client.name} has {self._unacked[cable]} unacked messages, and asked for {limit}"
            )
