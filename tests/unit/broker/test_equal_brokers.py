"""A broker that applied the root's entries, or was restored from a snapshot of the root, holds what the root holds."""

from __future__ import annotations

import pytest

from tests.unit.broker.equal_course import Course
from tests.unit.broker.equal_scene import TINY

STEPS = 200


@pytest.mark.parametrize("seed", range(12))
def test_followers_hold_the_same_state_as_the_root(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TINY.items():
        monkeypatch.setattr(f"pandomq.broker.{name}", value)
    Course(seed).play(STEPS)
