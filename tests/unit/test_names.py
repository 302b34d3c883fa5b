"""Names of classes. A reader who searches for one should find one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src" / "pandomq"
LEVELS_OF_ONE_NOUN: Final = {"Channel", "Queue"}
"""The broker has the meaning of a channel or a queue, and the kernel its messages."""


def test_no_two_classes_share_a_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert shared.keys() == LEVELS_OF_ONE_NOUN, shared
