"""Each file and function that the walks in ARCHITECTURE.md name exists, and each walk fits a screen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pandomq"
ROW = re.compile(r"^\| (\d+) \| `([^`]+)` \| `([^`]+)` \| .+ \|$")
ROWS_MAX = 24
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def walks() -> dict[str, list[tuple[int, str, str]]]:
    """By heading: the number, the file and the function of each row."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    heading = ""
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif (row := ROW.match(line)) is not None:
            found.setdefault(heading, []).append((int(row[1]), row[2], row[3]))
    return found


def defined_in(file: str) -> set[str]:
    names: set[str] = set()
    for node in ast.parse((SOURCE / file).read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=owner, body=body):
                names |= {f"{owner}.{one.name}" for one in body if isinstance(one, FUNCTION)}
            case _:
                # Constants and imports.
                pass
    return names


def test_there_are_four_walks() -> None:
    assert list(walks()) == [
        "The life of a publish",
        "The life of an ack through another broker",
        "The life of a failover",
        "The life of a Spark read",
    ]


@pytest.mark.parametrize("heading", walks())
def test_a_walk_names_existing_files_and_functions(heading: str) -> None:
    rows = walks()[heading]
    assert [number for number, _, _ in rows] == list(range(1, len(rows) + 1))
    assert len(rows) <= ROWS_MAX
    for _, file, function in rows:
        assert function in defined_in(file), f"{file} has no {function}"
