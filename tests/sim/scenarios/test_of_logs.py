"""Courses of events that the log must survive, by name. Each is a plot of `sim/logs/plots`; its timing is random, so it
is played with several seeds, and must reach its turning points: a plot that does not reach them proves nothing."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pandomq.sim.campaigns.campaign import quiet
from pandomq.sim.logs.plots.programme import PLOTS
from pandomq.sim.logs.world import LogWorld

SEEDS = range(1000, 1003)


class Scenario(NamedTuple):
    plot: str
    turns: tuple[str, ...]


SCENARIOS = {
    "from five primaries to four and back, cut in two at each step, and a root dies in between": Scenario(
        "members",
        (
            "the log says: old and new",
            "a root dies between two sets of members",
            "there are 4 primaries",
            "there are 5 primaries",
        ),
    ),
    "an entry is committed on A and B, B's disk is wiped, A is killed, C stands": Scenario(
        "wiped copy", ("one copy is lost, the other one down",)
    ),
    "a bit flips in the last entry of a backup, the root is killed, a laggard stands": Scenario(
        "rotten copy", ("one copy is rotten, the other one down",)
    ),
    "an entry of an old term is on most disks, and is cut (Raft, figure 8)": Scenario(
        "figure 8",
        (
            "a second root has an entry for itself",
            "an old entry is on most disks, and nothing newer is",
            "another root has cut it",
        ),
    ),
    "a backup lags past compaction, and gets a snapshot while the log goes on": Scenario(
        "behind", ("the log that a backup needs is reclaimed", "a snapshot is on its way")
    ),
    "the root changes while a snapshot is on its way": Scenario(
        "behind, root changes", ("the log that a backup needs is reclaimed", "a snapshot is on its way")
    ),
    "the receiver of a snapshot crashes, again and again": Scenario(
        "behind, receiver crashes", ("the log that a backup needs is reclaimed", "a snapshot is on its way")
    ),
    "pieces of a snapshot are lost, doubled and reordered": Scenario(
        "behind, pieces lost", ("the log that a backup needs is reclaimed", "a snapshot is on its way")
    ),
    "a snapshot is older than the log by the time it arrives": Scenario(
        "behind, overtaken",
        (
            "the root has reclaimed the log that a backup needs, and another has it",
            "a backup has more than the snapshot that is on its way",
        ),
    ),
    "an entry is committed on A and B, B's store is put back to a backup, A is killed, C stands": Scenario(
        "backup put back", ("one copy is an old one, the other one down",)
    ),
    "a voter loses its power in the moment in which it votes": Scenario(
        "voter dies speaking",
        ("a voter loses its power as it speaks", "the other candidate is elected as well"),
    ),
    "a successor sleeps through its hand-over, and a voter restarts meanwhile": Scenario(
        "late successor", ("a voter restarts while a successor of the old root sleeps",)
    ),
    "all but the root restart within its lease": Scenario(
        "restart in the lease", ("all but the root have restarted", "another is elected")
    ),
    "a backup that does not hear the root asks the others for their votes": Scenario(
        "deaf backup", ("a backup has stood in vain",)
    ),
    "the root's disk stalls, its network does not": Scenario("stalled root", ("another has taken over",)),
    "an acknowledgement of an older term arrives late": Scenario(
        "late ack", ("an old acknowledgement meets a new entry",)
    ),
    "a surplus tail meets the log of the root after the next": Scenario(
        "surplus tail", ("two roots later a surplus tail meets the log",)
    ),
    "as many backups are missing as a cluster can do without": Scenario(
        "missing backup", ("the log went on without some backups",)
    ),
    "a vote of a broker that has lost its memory since elects another, whatever the clocks say": Scenario(
        "old vote",
        ("two votes are on their way", "one that lost its memory holds a copy", "the old votes have elected another"),
    ),
    "those whom a forced promotion leaves out live, and hear of it": Scenario(
        "half-heard epoch",
        ("one is promoted, and the others live", "they hear of the epoch, and not what it says"),
    ),
    "half of the primaries are lost, and one is promoted whom the survivors lag past compaction": Scenario(
        "outrun survivors",
        (
            "the log that two backups need is reclaimed",
            "one is promoted, and the others that are left are behind",
            "the others that are left have followed it",
        ),
    ),
}


def test_every_plot_has_a_scenario() -> None:
    assert {scenario.plot for scenario in SCENARIOS.values()} == set(PLOTS)


@pytest.mark.proves("R5", "R8", "R9")
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    scenario = SCENARIOS[name]
    nodes = PLOTS[scenario.plot].nodes
    for seed in SEEDS:
        world = LogWorld(seed, nodes[seed % len(nodes)], plot=scenario.plot)
        with quiet():
            outcome = world.run()
        assert not outcome.broken, "\n".join(outcome.story)
        assert set(scenario.turns) <= set(world.stage.turns), (seed, world.stage.turns, outcome.story)
        assert world.performance is not None and world.performance.finished, (seed, world.stage.turns)
