"""Faults of machines with one log, and of the network between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from pandomq.ids import NodeName
from pandomq.replica.effects import ChangeEnded, RequestNumber
from pandomq.replica.members.membership import Member
from pandomq.sim.agenda import Agenda
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.disks.files import Loss
from pandomq.sim.logs.keeper import Keeper
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.network import MessageWeather, Network
from pandomq.sim.replicas.faults import ReplicaFaults
from pandomq.sim.trace import WorldTrace

DOWN_MS: Final = (1, 1_200)
HELD_DOWN_MS: Final = 4_000
"""The time for which a machine that was named as dead stays down."""


class LogFaults(ReplicaFaults[LogMachine]):
    between_ms = (150, 400, 1_200)
    paused_ms = (50, 400, 2_500)
    stalled_ms = (100, 700, 3_000)
    losses = (Loss.ALL, Loss.SOME)
    down_ms = DOWN_MS
    named_dead_ms = HELD_DOWN_MS

    def __init__(
        self,
        agenda: Agenda,
        trace: WorldTrace,
        random: Random,
        machines: list[LogMachine],
        network: Network,
        reduction: Reduction,
    ) -> None:
        """`machines` are all machines, including those that the reduction leaves out."""
        self._all_names = [machine.name for machine in machines]
        self._kept = [machine for machine in machines if reduction.keeps_machine(machine.name)]
        self._network = network
        self._unanswered = set()
        self._promotions: dict[tuple[int, RequestNumber], str] = {}
        """By life and request: the id of the epoch that a promotion begins."""
        super().__init__(agenda, trace, random, reduction)

    @property
    def _machines(self) -> Sequence[LogMachine]:
        return self._kept

    @property
    def _names(self) -> Sequence[str]:
        return self._all_names

    def _all_kinds(self) -> dict[str, Callable[[LogMachine], None]]:
        return {
            **super()._all_kinds(),
            "split": self._split,
            "one way": self._deafen,
            "tangle": self._tangle,
            "clog": self._clog,
            "storm": self._storm,
        }

    @property
    def _network_fails(self) -> bool:
        return bool(self._network.cut)

    def hold_down(self, machine: LogMachine, until_ms: int) -> None:
        """The machine does not restart by itself before this time."""
        self._held_down[machine.name] = until_ms

    def begin(self) -> None:
        self._agenda.after(self._times.randint(100, 1_500), self._strike)

    def end(self) -> None:
        self._network.heal()
        self._network.weather = MessageWeather()
        super().end()

    def _restore(self, machine: LogMachine) -> None:
        machine.wake_up()
        super()._restore(machine)

    # The network.

    def _split(self, machine: LogMachine) -> None:
        names = [one.name for one in self._machines]
        side = self._random.sample(names, self._random.randint(1, max(1, len(names) - 1)))
        self._trace.say("network", f"{' '.join(sorted(side))} are cut off from the others")
        others = [name for name in names if name not in side]
        self._block([path for one in side for other in others for path in ((one, other), (other, one))])

    def _deafen(self, machine: LogMachine) -> None:
        other = self._random.choice(self._machines).name
        if other != machine.name:
            self._trace.say("network", f"nothing comes from {machine.name} to {other}")
            self._block([(machine.name, other)])

    def _tangle(self, machine: LogMachine) -> None:
        """Cuts paths at random."""
        names = [one.name for one in self._machines]
        paths = [(one, other) for one in names for other in names if one != other and self._random.random() < 0.3]
        self._trace.say("network", f"cut: {', '.join(f'{one} to {other}' for one, other in paths)}")
        self._block(paths)

    def _block(self, paths: list[tuple[str, str]]) -> None:
        self._network.block(paths)
        self._agenda.after(self._random.choice((200, 1_500, 4_000)), self._heal)

    def _heal(self) -> None:
        if self._network.cut:
            self._trace.say("network", "is whole again")
        self._network.heal()

    def _clog(self, machine: LogMachine) -> None:
        other = self._random.choice(self._machines).name
        self._trace.say("network", f"what {machine.name} sends to {other} takes long")
        self._network.clogged.add((machine.name, other))
        self._agenda.after(self._random.choice((300, 2_000)), self._network.clogged.clear)

    def _storm(self, machine: LogMachine) -> None:
        weather = MessageWeather(
            latency_ms=self._random.choice(((0, 3), (1, 30), (20, 120))),
            loss=self._random.choice((0.0, 0.05, 0.3)),
            doubling=self._random.choice((0.0, 0.2)),
            disorder=self._random.choice((0.0, 0.3)),
        )
        self._trace.say("network", f"weather: {weather}")
        self._network.weather = weather

    # Operators.

    def _ask_hand_over(self, root: LogMachine) -> None:
        root.do(lambda keeper: keeper.ask(keeper.replica.hand_over))

    def _ask_members(self, root: LogMachine, names: list[str]) -> None:
        members = [Member(NodeName(name)) for name in names]
        root.do(lambda keeper: keeper.ask(lambda: keeper.replica.change_members(members)))

    def _ask_promotion(self, machine: LogMachine, dead: list[str], epoch_id: str) -> None:
        gone = [NodeName(name) for name in dead]

        def promote(keeper: Keeper) -> None:
            self._promotions[machine.life, keeper.replica.promote(gone, epoch_id)] = epoch_id

        machine.do(lambda keeper: keeper.ask(lambda: promote(keeper)))

    def told(self, machine: LogMachine, ended: ChangeEnded) -> None:
        epoch_id = self._promotions.pop((machine.life, ended.request), None)
        if epoch_id is not None:
            self._promotion_ended(epoch_id, done=ended.done)
