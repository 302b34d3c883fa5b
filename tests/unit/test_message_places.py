"""No message shows the braces of a place that nobody filled: such a string lacks its f."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
PLACE = re.compile(r"\{[a-z_][a-z0-9_]*[^{}\s\"']*\}")


def unfilled(source: str) -> Iterator[str]:
    """Strings in exceptions and log lines; also those beside an f-string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")):
            segment = f"({ast.get_source_segment(source, node)})"
            for token in tokenize.generate_tokens(io.StringIO(segment).readline):
                if token.type == tokenize.STRING and "f" not in token.string.partition(token.string[-1])[0].lower():
                    yield from PLACE.findall(token.string)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('raise ValueError("no {name}: {pace.rate:g}")', 2),
        ('raise ValueError(f"no {name}: {pace.rate:g}")', 0),
        ('raise ValueError(f"no {name}" "and no {other!r}")', 1),
        ('log.info("begins {name}", 5)', 1),
        ('raise ValueError("expected {} or {\\"a\\": 1}")', 0),
    ],
)
def test_unfilled_places_are_found(source: str, count: int) -> None:
    assert len(list(unfilled(source))) == count


def test_every_place_is_filled() -> None:
    found = {path.name: places for path in SOURCES.rglob("*.py") if (places := list(unfilled(path.read_text())))}
    assert found == {}
