"""Which files begin first where several processes share the tests: the long ones.

A file stays in one process. If a long one began last, the others would have nothing left to do while it runs; and
what waits for brokers should run beside what computes. Within a file the order stays as it is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

TESTS: Final = f"{Path(__file__).parents[1]}/"

FIRST: Final = (
    "sim/test_brokers.py",
    "integration/cluster",
    "sim",
    "integration",
    "fuzz",
    "packaging",
    "spec",
)
"""Files and directories, by how long their files take; whatever is not named comes after them."""


def put_long_ones_first(items: list[pytest.Item]) -> None:
    """Needs `--no-loadscope-reorder`, without which files with many tests go before those with long ones."""
    items.sort(key=lambda item: _rank(str(item.path).removeprefix(TESTS)))


def _rank(place: str) -> int:
    return next((rank for rank, start in enumerate(FIRST) if place.startswith(start)), len(FIRST))
