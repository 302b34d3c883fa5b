"""Golden scenarios: what brokers say to each other, word by word, as `golden/*.txt` tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.replica.golden_scene import GOLDEN, play

PATHS = sorted(GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_scenes_match_their_golden_texts(path: Path) -> None:
    text = path.read_text()
    assert play(text) == text, "`python -m tests.unit.replica.golden_scene` writes it anew"


def test_golden_scenarios_exist() -> None:
    assert len(PATHS) >= 6
