"""A plot about changes of members: from five to four and back, with a partition at every step, and a root that dies in
between."""

from __future__ import annotations

from typing import Final

from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.plot import Course, Plot
from pandomq.sim.logs.plots.opening import a_root, all_even
from pandomq.sim.logs.scene import LogScene


def _members(stage: LogScene) -> Course:
    everyone = list(stage.machines)
    yield from a_root(stage)
    leaver = stage.random.choice(everyone)
    steps = [[machine for machine in everyone if machine is not leaver], everyone]
    for wanted in steps:
        yield from _change(stage, wanted)
        stage.reached(f"there are {len(wanted)} primaries")
    yield from all_even(stage)


def _change(stage: LogScene, wanted: list[LogMachine]) -> Course:
    """Repeats the request until it is done: if a root dies in between, the request may be lost with it."""
    deaths = 1
    while not _is_settled(stage, wanted):
        root = yield from a_root(stage)
        stage.change_members(root, wanted)
        yield from _step(stage, root, wanted, joint=True)
        if deaths and stage.random.random() < 0.7:
            deaths -= 1
            stage.kill(root)
            stage.reached("a root dies between two sets of members")
            yield stage.any_ms(2 * stage.lease_ms)
            stage.start(root)
        root = yield from a_root(stage)
        if _is_there(stage, root, wanted, joint=True):
            yield from _step(stage, root, wanted, joint=False)
        yield from a_root(stage)
        yield stage.any_ms(stage.lease_ms)


def _step(stage: LogScene, root: LogMachine, wanted: list[LogMachine], *, joint: bool) -> Course:
    """When the root has written its entry the network is partitioned, with the root in a minority or not; a client
    continues."""
    yield lambda: not stage.is_root(root) or _is_there(stage, root, wanted, joint=joint) or _is_settled(stage, wanted)
    if not _is_there(stage, root, wanted, joint=joint):
        return
    if joint:
        stage.reached("the log says: old and new")
    companions = stage.others(root)[: stage.random.choice((0, 1, 1, 1, 2))]
    side = [root, *companions]
    stage.part(side, [machine for machine in stage.machines if machine not in side])
    for _ in range(3):
        stage.propose(root)
        yield stage.any_ms(stage.lease_ms / 3)
    yield stage.any_ms(stage.lease_ms)
    stage.heal()
    yield from a_root(stage)


def _is_there(stage: LogScene, root: LogMachine, wanted: list[LogMachine], *, joint: bool) -> bool:
    view = stage.view(root)
    if view is None or view.membership is None:
        return False
    if joint:
        return view.membership.joint
    return not view.membership.joint and view.membership.names == {machine.name for machine in wanted}


def _is_settled(stage: LogScene, wanted: list[LogMachine]) -> bool:
    root = stage.root()
    view = None if root is None else stage.view(root)
    if view is None or view.membership is None or view.membership.joint:
        return False
    return view.membership.names == {machine.name for machine in wanted}


PLOTS: Final = (Plot("members", "Five primaries become four and five again.", _members, (5,)),)
