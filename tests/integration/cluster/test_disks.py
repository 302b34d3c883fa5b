"""Disks that fill up or stall under load."""

from __future__ import annotations

from random import Random

import pytest

from . import disk_cases as cases
from .disk_cases import DiskCluster
from .scene import Case, play

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


@pytest.mark.proves("R20")
@pytest.mark.parametrize("case", cases.SMALL_DISK_CASES)
def test_a_full_disk(case: Case, on_small_disks: DiskCluster, chance: Random) -> None:
    play(case, on_small_disks, chance)


@pytest.mark.parametrize("case", cases.STALLING_DISK_CASES)
def test_a_stalled_disk(case: Case, on_stalling_disks: DiskCluster, chance: Random) -> None:
    play(case, on_stalling_disks, chance)
