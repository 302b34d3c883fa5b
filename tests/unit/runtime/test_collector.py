"""Garbage in cycles is found while it is young; what lives on is not looked at again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pandomq import kernel

PROGRAM = """
import gc, weakref
from pandomq.runtime import collector

class Knot:
    def __init__(self):
        self.self = self

collector.begin()
kept = [Knot() for _ in range(20 * collector.YOUNG_OBJECTS)]
assert gc.get_freeze_count() > 15 * collector.YOUNG_OBJECTS, "what lives on is frozen"
young = [weakref.ref(Knot()) for _ in range(20 * collector.YOUNG_OBJECTS)]
alive = sum(one() is not None for one in young)
assert alive <= (collector.YOUNG_COLLECTIONS + 2) * collector.YOUNG_OBJECTS, alive
old = weakref.ref(kept[0])
del kept
gc.collect()
assert old() is not None
collector.FULL_OBJECTS_MAX = 10**9
collector.look_at_all()
assert old() is None, "all is looked at from time to time"
print("done")
"""


@pytest.mark.skipif(kernel.KIND == "plain", reason="with the plain kernel nothing is frozen")
def test_young_cycles_are_found_and_old_objects_left_alone() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "done\n", ended.stderr
