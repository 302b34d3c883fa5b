"""Hours, days and weeks pass: again and again everything stands still for long, and then continues with late clocks.

This happens to a cluster whose machines are suspended together, or whose data centre loses power. It costs no events,
however long it takes, so it crosses ages that no world could wait for, and each time there is an election. Sometimes
all brokers are down meanwhile, and know the time from their wall clocks alone. It happens once after the faults: then
everything with a time to live has to expire.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.sim.checkers.hours import HoursPass
from pandomq.sim.disks.files import Loss
from pandomq.sim.features.feature import Feature

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings
    from pandomq.sim.checkers.checker import Checker
    from pandomq.sim.faults import WorldFaults
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
SPANS_MS: Final = (MINUTE_MS, 40 * MINUTE_MS, 2 * HOUR_MS, 7 * HOUR_MS, 25 * HOUR_MS, 31 * 24 * HOUR_MS)
"""Longer than the broker's ages: a minute, half an hour, one hour, six hours, a day, thirty days."""
FOR_EVER_MS: Final = 10 * 365 * 24 * HOUR_MS
LEAPS_MAX: Final = 6
PAUSES_MS: Final = (150, 500)
"""The shortest and the longest time between two leaps."""
DARK_CHANCE: Final = 0.25
ROOT_DIES_CHANCE: Final = 0.5
ROOT_DIES_AFTER_MS: Final = (1, 12)
"""Long enough for requests under way to arrive, among them entries that are hours late."""
NOTICED_MS: Final = 500
"""Within this time all brokers have closed the connections on which they received nothing during a standstill."""


class HoursFeature(Feature):
    name = "hours"
    chance = 0.25

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self._leaps_left = random.randint(1, LEAPS_MAX)
        self._seed = random.getrandbits(64)
        self._faults: WorldFaults | None = None
        self._last_leap_done = False
        self._checker = HoursPass(world.ledger, world.agenda, world.machines)

    def adjust(self, settings: NodeSettings) -> NodeSettings:
        """A consumer that is suspended with all others could not ack in time. Clients that repeat unanswered requests
        rely on the broker's memory: a repetition after a longer time may count twice, as the limits say. So named
        producers are remembered for longer than any world lasts, unless the world has clients that know what the broker
        forgets. Repetitions by brokers on behalf of their clients must never count twice."""
        tables = settings.tables
        if not any(feature.name == "forgetting" for feature in self.world.features) or self.world.streams:
            tables = msgspec.structs.replace(tables, staged_query_age_ms=FOR_EVER_MS, staged_left_alone_ms=FOR_EVER_MS)
            settings = msgspec.structs.replace(settings, producer_age_ms=FOR_EVER_MS)
        return msgspec.structs.replace(settings, consumer_timeout_ms=0, tables=tables)

    def checkers(self) -> Sequence[Checker]:
        return (self._checker,)

    def join_faults(self, faults: WorldFaults) -> None:
        # A broker that is promoted by force may not know the time.
        faults.kinds = [kind for kind in faults.kinds if kind != "promote"] or ["kill"]
        self._faults = faults
        self._later()

    def _later(self) -> None:
        self.world.agenda.after(self.random.randint(*PAUSES_MS), self._leap_in_faults)

    def _leap_in_faults(self) -> None:
        assert self._faults is not None
        if self._faults.over or not self._leaps_left:
            return
        self._leaps_left -= 1
        if self.random.random() < DARK_CHANCE:
            for machine in (*self.world.machines, *self.world.scene.secondaries):
                if machine.up:
                    machine.crash(Loss.NONE)
        root, random = self.world.machine, Random(f"{self._seed} {self._leaps_left}")
        self._leap(self.random.choice(SPANS_MS))
        if root.serving and len(self.world.machines) > 1 and random.random() < ROOT_DIES_CHANCE:
            self._kill_later(root, self._faults, random)
        self._later()

    def _kill_later(self, root: Machine, faults: WorldFaults, random: Random) -> None:
        """Kills the root soon; the others elect a root from their own knowledge of the time."""
        life = root.life

        def die() -> None:
            if root.up and root.life == life and not faults.over and faults.strikes.admits("kill after hours", "hours"):
                root.crash(Loss.NONE)

        self.world.agenda.after(random.randint(*ROOT_DIES_AFTER_MS), die)

    def _leap(self, span_ms: int) -> None:
        span_ms += self.random.randint(0, MINUTE_MS)
        self.world.trace.say("world", f"stands still for {span_ms / HOUR_MS:.2f} hours")
        self.world.ledger.leapt_ms += span_ms
        self._checker.leapt(span_ms)
        self.world.agenda.leap(span_ms)
        self.world.ledger.last_leap_ms = self.world.agenda.now_ms
        self.world.ledger.leaps.append((self.world.agenda.now_ms, span_ms))
        for machine in (*self.world.machines, *self.world.scene.secondaries):
            machine.leap(span_ms)

    def healed(self) -> bool:
        if not self._last_leap_done:
            self._last_leap_done = True
            self._leap(self.random.choice(SPANS_MS))
        # The paths to private queues may break, and the world must not rely on them before.
        return self.world.machine.serving and self.world.agenda.now_ms >= self.world.ledger.last_leap_ms + NOTICED_MS
