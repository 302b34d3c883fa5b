"""Subscribers of a topic exchange that bind and unbind, and roots that are killed while a bind waits."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final, cast

from pandomq.replica.roles.transitions import Role
from pandomq.sim.clients.topic_subscriber import KEYS, TOPICS, TopicAnnouncer, TopicSubscriber
from pandomq.sim.cluster.checkers.topics import TopicsKept, matches
from pandomq.sim.disks.files import Loss
from pandomq.sim.features.feature import Feature
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.cluster.faults import ClusterFaults
    from pandomq.sim.cluster.world import ClusterWorld
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.world import World

CALM_CHANCE: Final = 0.6
"""The chance that no fault breaks the path between two live brokers; in these worlds all subscriptions count."""
KILL_CHANCE: Final = 0.3
"""The chance that the root is killed while a change of bindings waits for its answer."""
SOON_CHANCE: Final = 0.5
"""The chance that a message is published as soon as a bind is answered."""
KILL_AFTER_MS: Final = (0, 0, 1, 1, 2, 4, 8)
QUIET_MS: Final = 300
"""The time from one such kill until the next."""
LEVEL_MS: Final = 5_000
"""The time within which the root has removed bindings that no private queue needs any more."""
OUTLETS: Final = "outlets have the bindings of private queues"


class TopicsFeature(Feature):
    name = "topics"
    chance = 0.35

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._world = cast("ClusterWorld", world)
        self._checker = TopicsKept(world.ledger, self._world.subscriptions)
        self._faults: WorldFaults | None = None
        self._kills = random.random() < 0.8
        self._seed = random.getrandbits(64)
        self._quiet_until_ms = 0
        self._asked_ms: int | None = None
        """The time at which the world first compared the outlets' bindings with the expected ones."""

    @classmethod
    def suits(cls, world: World) -> bool:
        return bool(getattr(world, "proxied", False))

    def checkers(self) -> Sequence[Checker]:
        return (self._checker,)

    def clients(self) -> Sequence[SimulatedClient]:
        scene, random = self.world.scene, self.random
        subscribers = [
            TopicSubscriber(scene, f"topic-subscriber-{number}", self._checker, self._tempt, self._publish_soon)
            for number in range(random.randint(2, 4))
        ]
        if len(subscribers) > 2:
            # Two subscribers on one broker share their bindings at the root.
            subscribers[0].place = subscribers[1].place = random.choice(
                [machine.name for machine in (*scene.machines, *scene.secondaries)]
            )
        announcers = [
            TopicAnnouncer(scene, f"topic-announcer-{number}", random.randint(20, 60), self._checker)
            for number in range(random.randint(1, 2))
        ]
        return [*subscribers, *announcers]

    def join_faults(self, faults: WorldFaults) -> None:
        self._faults = faults
        if self.random.random() < CALM_CHANCE:
            of_cluster = cast("ClusterFaults", faults)
            of_cluster.keep_ways_whole()
            self._world.faults_changed(of_cluster)

    # Some messages are published as soon as a matching binding exists.

    def _publish_soon(self, subscriber: TopicSubscriber, pattern: str) -> None:
        random = subscriber.random
        announcers = [client for client in self.world.clients if isinstance(client, TopicAnnouncer)]
        if announcers and random.random() < SOON_CHANCE:
            random.choice(announcers).publish_now(random.choice([key for key in KEYS if matches(pattern, key)]))

    # Roots die while a bind or an unbind waits.

    def _tempt(self, subscriber: TopicSubscriber) -> None:
        faults, agenda = self._faults, self.world.agenda
        if faults is None or faults.over or not self._kills or agenda.now_ms < self._quiet_until_ms:
            return
        changes = subscriber.changes
        own = Random(f"{self._seed} {subscriber.name} {changes}")
        if own.random() >= KILL_CHANCE or not faults.strikes.admits("kill root at a bind", "bind"):
            return
        self._quiet_until_ms = agenda.now_ms + QUIET_MS

        def strike() -> None:
            root = next((one for one in self.world.machines if one.replica and one.replica.role is Role.ROOT), None)
            if root is not None and subscriber.waits and subscriber.changes == changes and not faults.over:
                self.world.trace.say(root.name, f"dies while {subscriber.name} waits for an answer")
                root.crash(own.choice(list(Loss)))

        agenda.after(own.choice(KILL_AFTER_MS), strike)

    # The bindings at the root at the end.

    def healed(self) -> bool:
        if self._asked_ms is None:
            self._asked_ms = self.world.agenda.now_ms
        wrong = self._wrong_outlet()
        # A feature may change the root once more.
        since_ms = max(self._asked_ms, self.world.ledger.drilled_ms)
        if wrong is not None and self.world.agenda.now_ms > since_ms + LEVEL_MS:
            raise BrokenPromise(OUTLETS, wrong)
        return wrong is None

    def _wrong_outlet(self) -> str | None:
        wanted: dict[str, set[str]] = {}
        for client in self.world.clients:
            if isinstance(client, TopicSubscriber):
                bound = client.keys_by_front
                if bound is None:
                    return f"{client.name} is not bound to anything"
                for broker, keys in bound.items():
                    wanted.setdefault(broker, set()).update(keys)
        root = self.world.machine
        if not root.serving or root.node is None:
            return "there is no root"
        vhost = root.node.broker.state.vhosts["/"]
        for broker, outlet in vhost.outlets.items():
            bindings = vhost.router.bindings_to(outlet)
            found = {binding.routing_key for binding in bindings if binding.source == TOPICS.exchange}
            expected = wanted.get(broker, set())
            if found != expected:
                return f"at {root.name} the outlet of {broker} is bound to {sorted(found)}, not to {sorted(expected)}"
        return None
