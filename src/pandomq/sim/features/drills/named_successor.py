"""An operator asks the root to hand over to a named broker.

A broker that is no primary is refused. If the broker cannot be reached, and so lacks the end of the log, the request is
refused or times out; either way the root continues. If the broker has the whole log, and links to its voters, it is the
root soon after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.replica.limits import HAND_OVER_MS
from pandomq.sim.cluster.network_faults import both_ways
from pandomq.sim.features.drills.drill import Awaited, Drill, of_brokers
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.network.byte_network import NetworkFault

if TYPE_CHECKING:
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

ANSWERED_MS: Final = HAND_OVER_MS + 1_000
OWED_MS_MAX: Final = HAND_OVER_MS // 2
"""With two brokers both disks must have the whole log before the root steps down; a broker that lags by more may be
refused."""
TAKEOVER_MS: Final = 4_000
STRIKE: Final = "hand over to"
MEMBERS_MIN: Final = 3
"""With fewer members, the others could not continue while a backup is cut off."""


class HandOverAnswer(NamedTuple):
    done: bool
    stepped_down: bool
    """Whether the root has stepped down for another one, whatever followed."""


class NamedSuccessorFeature(Drill):
    name = "named successor"
    chance = 0.3
    promise = "hand-over to a named broker"

    @classmethod
    def suits(cls, world: World) -> bool:
        return of_brokers(world, 2)

    def join_faults(self, faults: WorldFaults) -> None:
        faults.add_kind(STRIKE, self._strike)

    def _strike(self, machine: Machine) -> None:
        """Strikes during the faults: whatever the outcome, nothing is lost."""
        root = next((one for one in self.world.machines if one.serving), None)
        if root is not None:
            self._ask(root, machine.name)

    def _ask(self, root: Machine, name: str) -> list[HandOverAnswer]:
        """Asks the root to hand over; returns a list that receives the answer."""
        answers: list[HandOverAnswer] = []
        asked_term = 0 if root.node is None else root.node.peers.knowledge.term

        def ended(done: bool, text: str) -> None:
            self.world.trace.say(root.name, f"{'done' if done else 'refused'}: {text}")
            # A successor may be known from an earlier hand-over, after which this broker was elected again.
            known = None if root.node is None else root.node.peers.knowledge
            stepped_down = known is not None and known.successor is not None and known.term != asked_term
            answers.append(HandOverAnswer(done, stepped_down))

        self.world.trace.say(root.name, f"is asked to hand over to {name}")
        root.ask(lambda peers: peers.hand_over(name, ended))
        return answers

    def course(self) -> Iterator[Awaited]:
        yield self.is_calm
        others = [one.name for one in (*self.world.machines, *self.world.scene.secondaries)]
        outsiders = [name for name in others if name not in self.members()]
        yield from self._refused(self.random.choice(outsiders or ["nobody"]))
        if len(self.members()) >= MEMBERS_MIN:
            yield from self._behind(self.random.choice(self.backups()))
        if self.backups():
            yield self._is_ready
            name = self.random.choice(self.backups())
            answers = self._ask(self.root, name)
            yield self.within(ANSWERED_MS, "the request for a hand-over is answered", lambda: bool(answers))
            if not answers[0].done:
                raise BrokenPromise(self.promise, f"{name} has the whole log, and is not the root")
            yield self.within(TAKEOVER_MS, f"{name} is root", lambda: self.is_root(name))
            yield self.confirms(2, "by the next root")

    def _is_ready(self) -> bool:
        """The root does not know the links between the others. After a cut they are dialed again within a second; until
        then a backup may have the whole log and lack the votes."""
        if not self.is_calm():
            return False
        names = set(self.members())
        nodes = [self.machine_of(name).node for name in sorted(names)]
        linked = all(node is not None and len(names & node.peers.linked) == len(names) - 1 for node in nodes)
        now_ms = self.world.agenda.now_ms
        return linked and all(self.machine_of(name).disk.idle_ms - now_ms <= OWED_MS_MAX for name in names)

    def _refused(self, name: str) -> Iterator[Awaited]:
        root = self.root
        answers = self._ask(root, name)
        yield self.within(ANSWERED_MS, "the request for a hand-over is answered", lambda: bool(answers))
        if answers[0].done or answers[0].stepped_down:
            raise BrokenPromise(self.promise, f"{root.name} stepped down in favour of {name}, which is not a primary")
        yield self.confirms(2, "by the root that did not hand over")

    def _behind(self, name: str) -> Iterator[Awaited]:
        root, network = self.root, self.root.network
        others = [other for other in network.machines if other != name]
        trouble = NetworkFault(cut=frozenset(path for other in others for path in both_ways((name, other))))
        self.say(f"{name} is cut off from the others")
        network.impose(trouble)
        yield self.confirms(5, f"without {name}")
        answers = self._ask(root, name)
        yield self.within(ANSWERED_MS, "the request for a hand-over is answered", lambda: bool(answers))
        if answers[0].done or answers[0].stepped_down:
            raise BrokenPromise(
                self.promise, f"{root.name} stepped down in favour of {name}, which lacks the log's end"
            )
        yield self.confirms(2, "by the root that did not hand over")
        network.lift(trouble)
        yield self.is_calm
