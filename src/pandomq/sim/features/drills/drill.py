"""A feature that waits until the world has healed, and then disturbs brokers that are otherwise well.

No other fault occurs meanwhile. So a drill may expect exactly what is promised, and within a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, ClassVar

from pandomq.node.broker_state import BrokerState
from pandomq.sim.clients.drill_clients import DrillPublisher
from pandomq.sim.features.feature import Feature
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.replica.view import ReplicaView
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

Awaited = Callable[[], bool]
ANSWER_MS = 5_000
"""The time within which a publisher receives its confirms while one broker or one link has a fault."""


class Drill(Feature):
    patience_ms = 15_000
    promise: ClassVar[str]
    """The promise that is broken if an expectation is not met."""

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self.kind = QueueKind(f"drill-{self.name}")
        self.prober = DrillPublisher(world.scene, f"prober-{self.name}", self.kind)
        self.prober.wants_root = True
        self._course: Iterator[Awaited] | None = None
        self._awaited: Awaited | None = None

    def course(self) -> Iterator[Awaited]:
        """Yields each condition that is awaited next."""
        raise NotImplementedError

    def queues(self) -> Sequence[QueueKind]:
        return (self.kind,)

    def clients(self) -> Sequence[SimulatedClient]:
        return (self.prober,)

    def healed(self) -> bool:
        if self._course is None:
            # Without its prober, or another client, a drill in a reduced world proves nothing.
            takes_part = {client.name for client in self.clients()} <= {one.name for one in self.world.clients}
            self._course = self.course() if takes_part else iter(())
            self._awaited = next(self._course, None)
        while self._awaited is not None and self._awaited():
            self._awaited = next(self._course, None)
        if self._awaited is None:
            return True
        self.world.ledger.drilled_ms = self.world.agenda.now_ms
        return False

    # Conditions for courses.

    def say(self, text: str) -> None:
        self.world.trace.say(self.name, text)

    def within(self, patience_ms: int, what: str, over: Awaited) -> Awaited:
        """The condition; the promise is broken if it takes longer."""
        self.say(f"expects: {what}")
        agenda = self.world.agenda
        deadline_ms = agenda.now_ms + patience_ms

        def look() -> bool:
            if over():
                return True
            if agenda.now_ms > deadline_ms:
                raise BrokenPromise(self.promise, f"this did not happen within {patience_ms} ms: {what}")
            return False

        return look

    def in_sync(self, patience_ms: int) -> Awaited:
        return self.within(self.lag_ms + patience_ms, "all backups are in sync", self.is_calm)

    def confirms(self, count: int, when: str) -> Awaited:
        self.prober.ask(count)
        patience_ms = self.lag_ms + ANSWER_MS
        return self.within(patience_ms, f"publishers are answered {when}", lambda: self.prober.content)

    @property
    def lag_ms(self) -> int:
        """The time until the disks have completed their pending requests. A slow disk may lag by seconds, which is no
        fault of the broker; a drill may leave no other disk that could have an entry earlier."""
        return max(0, *(machine.disk.idle_ms - self.world.agenda.now_ms for machine in self.world.machines))

    @property
    def root(self) -> Machine:
        return self.world.machine

    @property
    def view(self) -> ReplicaView:
        replica = self.root.replica
        assert replica is not None
        return replica.view()

    def members(self) -> list[str]:
        membership = self.view.membership
        return [] if membership is None else sorted(membership.names)

    def backups(self) -> list[str]:
        return [name for name in self.members() if name != self.root.name]

    def machine_of(self, name: str) -> Machine:
        return next(one for one in (*self.world.machines, *self.world.scene.secondaries) if one.name == name)

    def is_calm(self) -> bool:
        """Whether a root serves, stays, and all other members have its log."""
        root = self.root
        if (
            not root.serving
            or root.replica is None
            or root.node is None
            or root.node.peers.life.state is BrokerState.HANDED_OVER
        ):
            return False
        view = self.view
        in_sync = {peer.name for peer in view.peers if peer.in_sync and peer.voter and not peer.joining}
        settled = view.membership is not None and not view.membership.joint
        rests = settled and view.serving and not view.handing_over
        return rests and set(self.backups()) <= in_sync and self.prober.content

    def is_root(self, name: str) -> bool:
        """Whether it is the root now; it may not stay so if the disks of all others are slow."""
        return self.root.name == name and self.root.serving


def of_brokers(world: World, fewest: int) -> bool:
    """Whether a world has so many brokers beside secondaries."""
    return world.nodes >= fewest
