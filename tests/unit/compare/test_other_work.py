"""The work of other processes on the machine during a measurement."""

import subprocess
import sys

from tools.compare.peers.other_work import Worker, ticks_of_others

PROGRAM = """
import os, subprocess
from tools.compare.peers.other_work import OtherWork

others = OtherWork()
reading, writing = os.pipe()
# The shell says who its child is, and is gone; the child lives until there is nothing more to read.
shell = subprocess.Popen(
    ["sh", "-c", f"cat <&{reading} >/dev/null & echo $!"], stdout=subprocess.PIPE, pass_fds=(reading,)
)
orphan = int(shell.stdout.readline())
shell.wait()
parent = int(open(f"/proc/{orphan}/stat").read().rpartition(")")[2].split()[1])
os.close(writing)
assert parent == os.getpid(), (parent, os.getpid())
assert os.waitpid(orphan, 0) == (orphan, 0)
assert 0 <= others.share() <= 1
"""

INIT, OURS, CHILD, ORPHAN, OTHER, KERNEL, KERNEL_CHILD = 1, 10, 11, 12, 20, 2, 3


def worker(pid: int, parent: int, ticks: int, *, is_kernel: bool = False) -> Worker:
    return Worker(pid, parent, is_kernel, ticks)


def test_descendants_and_the_kernel_are_not_others() -> None:
    workers = [
        worker(INIT, 0, 1),
        worker(OTHER, INIT, 10),
        worker(OURS, OTHER, 100),
        worker(ORPHAN, OURS, 1_000),
        worker(CHILD, ORPHAN, 10_000),
        worker(KERNEL, 0, 100_000, is_kernel=True),
        worker(KERNEL_CHILD, KERNEL, 1_000_000, is_kernel=True),
    ]
    assert ticks_of_others(workers, OURS) == ticks_of_others(reversed(workers), OURS) == 11


def test_a_worker_whose_parent_ended_meanwhile_is_counted_as_another_one() -> None:
    assert ticks_of_others([worker(OURS, INIT, 1), worker(OTHER, 99, 2)], OURS) == 2


def test_a_process_that_loses_its_parent_becomes_our_child() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=30)
