"""docs/limits.md has every limit: the constants of `limits.py`, those of the HTTP API, and the keys of `[limits]`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pandomq import limits
from pandomq.admin import limits as admin_limits
from pandomq.cli.config.keys import all_keys
from pandomq.runtime import http, http_connections

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
UNITS = {"KIB", "MIB"}


def test_the_page_has_every_constant() -> None:
    names = {name for name in vars(limits) if name.isupper()} - UNITS
    assert {name for name in names if f"`{name}`" not in PAGE} == set()


@pytest.mark.parametrize("module", [admin_limits, http, http_connections])
def test_the_page_has_every_constant_of_http(module: ModuleType) -> None:
    numbers = {name for name, value in vars(module).items() if name.isupper() and isinstance(value, int | float)}
    own = numbers - set(vars(limits)) - {"CHANGE_MS"}
    assert {name for name in own if f"`{name}`" not in PAGE} == set()


def test_the_page_has_every_key() -> None:
    names = {key.name for key in all_keys().values() if key.section == "limits"}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
