"""Plots about copies: a committed entry is on enough disks, and stays."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from pandomq.replica.protocol.messages import Append, Appended, ReplicaMessage
from pandomq.sim.disks.files import Loss
from pandomq.sim.logs.machine import LogMachine
from pandomq.sim.logs.message_filter import Fate
from pandomq.sim.logs.plot import Course, Cue, Plot
from pandomq.sim.logs.plots.opening import a_quiet_root, a_root, all_even
from pandomq.sim.logs.scene import LogScene


def _figure_eight(stage: LogScene) -> Course:
    """Figure 8 of the Raft paper. x is on two of five disks when its root dies. The next root has an entry that no
    other machine receives, and dies. The root after that replicates x to most machines, and no entry of its own term.
    Then the second root restarts, whose log is the newer one, and is elected."""
    first = yield from a_quiet_root(stage)
    second, *rest = stage.others(first)
    old_term = stage.term(first)
    stage.part([first, second], rest)
    x = stage.propose(first)
    yield lambda: stage.has_on_disk(first, x) and stage.has_on_disk(second, x)
    stage.kill(first, second)
    stage.rule(lambda sender, receiver, message: Fate.LOST if _is_newer(message, old_term) else Fate.CARRIED)
    yield lambda: any(stage.is_root(machine) and _all_synced(stage, machine) for machine in rest)
    newer = next(machine for machine in rest if stage.is_root(machine))
    stage.kill(newer)
    stage.reached("a second root has an entry for itself")

    def keep_back(sender: str, receiver: str, message: ReplicaMessage) -> Fate:
        # The receiver refuses an Append that does not fit, and so reports the entry that it lacks.
        fits = isinstance(message, Append) and stage.last_index(stage.machine(receiver)) >= message.prev_index
        return Fate.LOST if fits and _is_newer(message, old_term) else Fate.CARRIED

    stage.rule(keep_back)
    stage.heal()
    stage.start(first, second)
    left = [machine for machine in rest if machine is not newer]
    yield lambda: any(stage.is_root(machine) for machine in (first, second))
    yield lambda: any(stage.has_on_disk(machine, x) for machine in left)
    yield 10 + stage.any_ms(30)
    stage.reached("an old entry is on most disks, and nothing newer is")
    stage.kill(first, second)
    stage.rule(None)
    stage.start(newer)
    yield lambda: stage.root() is not None
    stage.reached("another root has cut it")
    yield from all_even(stage)


def _is_newer(message: ReplicaMessage, term: int) -> bool:
    return isinstance(message, Append) and any(entry.term > term for entry in message.entries)


def _all_synced(stage: LogScene, machine: LogMachine) -> bool:
    view = stage.view(machine)
    return view is not None and view.synced_index == view.last_index


def _late_ack(stage: LogScene) -> Course:
    """A backup has an entry on its disk before the root has it, and the root then loses it with its power. The root is
    elected again, writes another entry at the same index, and now the old acknowledgement arrives."""
    root = yield from a_quiet_root(stage)
    other, third = stage.others(root)
    term = stage.term(root)

    def hold(sender: str, receiver: str, message: ReplicaMessage) -> Fate:
        return Fate.HELD if sender == other.name and isinstance(message, Appended) else Fate.CARRIED

    stage.part([third], [root, other])
    stage.rule(hold)
    stage.stall(root, stage.lease_ms // 2)
    x = stage.propose(root)
    yield lambda: stage.has_on_disk(other, x) and stage.held > 0
    yield 10
    stage.kill(root, loss=Loss.ALL)
    stage.heal()
    stage.part([other], [root, third])
    stage.start(root)
    yield lambda: any(stage.was_root(machine, term) for machine in (root, third))
    stage.part([root], [third])
    stage.reached("an old acknowledgement meets a new entry")
    stage.release()
    yield 20 + stage.any_ms(stage.lease_ms)
    yield from all_even(stage)


def _surplus_tail(stage: LogScene) -> Course:
    """A root that is cut off writes entries that no other machine receives. Two roots later a root sends it the entries
    after those that it has otherwise."""
    alone = yield from a_quiet_root(stage)
    rest = stage.others(alone)
    stage.part([alone], rest)
    for _ in range(stage.random.randint(3, 6)):
        stage.propose(alone, stage.random.choice((1, 300)))
    yield lambda: stage.root() in rest
    second = yield from a_root(stage)
    for _ in range(stage.random.randint(0, 2)):
        stage.propose(second)
    yield lambda: stage.is_even(*rest)
    term = stage.term(second)
    stage.kill(second)
    yield stage.any_ms(stage.lease_ms)
    stage.start(second)
    yield lambda: any(stage.was_root(machine, term) for machine in rest) and stage.is_even(*rest)
    stage.reached("two roots later a surplus tail meets the log")
    yield from all_even(stage)


def _wiped_copy(stage: LogScene) -> Course:
    """x is committed on two disks of three. One of them is replaced, the machine of the other is down, and the third
    broker, which never had x, is a candidate."""
    root, other, laggard = yield from _with_laggard(stage)
    x = stage.propose(root)
    yield lambda: stage.is_confirmed(x)
    stage.wipe(other)
    stage.kill(root)
    stage.reached("one copy is lost, the other one down")
    stage.heal()
    stage.start(other)
    yield 3 * stage.lease_ms + stage.any_ms(3 * stage.lease_ms)
    stage.demand(not any(map(stage.is_root, (other, laggard))), "nobody is elected who may lack what was committed")
    yield from all_even(stage)


def _backup_put_back(stage: LogScene) -> Course:
    """The same, with an older copy of the second machine's store, made before x. The copy has a mark."""
    root, other, laggard = yield from _with_laggard(stage)
    other.copy_store()
    yield stage.any_ms(stage.lease_ms)
    x = stage.propose(root)
    yield lambda: stage.is_confirmed(x)
    stage.put_back(other)
    stage.kill(root)
    stage.reached("one copy is an old one, the other one down")
    stage.heal()
    stage.start(other)
    yield 3 * stage.lease_ms + stage.any_ms(3 * stage.lease_ms)
    stage.demand(not any(map(stage.is_root, (other, laggard))), "nobody is elected who may lack what was committed")
    yield from all_even(stage)


def _rotten_copy(stage: LogScene) -> Course:
    """The same, with a bit that flips in the last entry of the second copy: that broker votes as if it had the
    entry."""
    root, other, laggard = yield from _with_laggard(stage)
    x = stage.propose(root, stage.random.choice((20, 300, 1_500)))
    yield lambda: stage.is_confirmed(x)
    stage.kill(other, loss=Loss.NONE)
    stage.rot(other, x)
    stage.kill(root)
    stage.reached("one copy is rotten, the other one down")
    stage.heal()
    stage.start(other)
    yield 3 * stage.lease_ms + stage.any_ms(3 * stage.lease_ms)
    stage.demand(not any(map(stage.is_root, (other, laggard))), "nobody is elected who may lack what was committed")
    yield from all_even(stage)


def _with_laggard(stage: LogScene) -> Generator[Cue, None, tuple[LogMachine, LogMachine, LogMachine]]:
    """A root, a backup, and a third machine that is cut off from both."""
    root = yield from a_quiet_root(stage)
    other, laggard = stage.others(root)
    stage.part([laggard], [root, other])
    return root, other, laggard


def _missing_backup(stage: LogScene) -> Course:
    """As many machines are missing, paused or slow as a cluster can do without: the log continues without waiting for
    them."""
    root = yield from a_root(stage)
    count = (len(stage.machines) - 1) // 2
    missing = stage.others(root)[:count]
    for machine in missing:
        how = stage.random.randrange(4)
        if how == 0:
            stage.kill(machine)
        elif how == 1:
            stage.pause(machine, 8 * stage.lease_ms + 2_000)
        elif how == 2:
            stage.part([machine], stage.others(machine))
        else:
            stage.stall(machine, 30 * stage.lease_ms)
    yield 4 * stage.lease_ms + 1_000
    before = stage.confirmed
    yield 4 * stage.lease_ms + 1_000
    stage.demand(stage.confirmed > before, "a backup that is missing holds nobody up", "progress")
    stage.reached("the log went on without some backups")
    yield from all_even(stage)


PLOTS: Final = (
    Plot("figure 8", "An entry of an old term is not committed by counting.", _figure_eight, (5,), {"append_bytes": 1}),
    Plot("late ack", "An acknowledgement of an older term does not count.", _late_ack, (3,)),
    Plot("surplus tail", "Entries are accepted only where they continue the log.", _surplus_tail, (3, 4, 5)),
    Plot("wiped copy", "A broker that has lost its disk does not vote.", _wiped_copy, (3,)),
    Plot("backup put back", "A broker that was put back to an older state does not vote.", _backup_put_back, (3,)),
    Plot(
        "rotten copy",
        "A broker with a damaged log votes by the end that the log is known to have had.",
        _rotten_copy,
        (3,),
    ),
    Plot("missing backup", "The log continues without a minority.", _missing_backup, (3, 5)),
)
