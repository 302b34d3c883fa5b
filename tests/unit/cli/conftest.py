"""A fake API for each test, and a runner that types commands at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pandomq.cli.main import app
from tests.unit.cli.fake_api import FakeApi, serving

Type = Callable[..., Result]


@pytest.fixture(autouse=True)
def nothing_of_the_developers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a pandomq.toml in the working directory nor variables of ours take part."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("PANDOMQ_") and name != "PANDOMQ_PLAIN":
            monkeypatch.delenv(name)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as api:
        yield api


@pytest.fixture
def type_() -> Type:
    """Runs a command line in this process."""
    runner = CliRunner()

    def run(*words: str, stdin: str | None = None, url: str | None = None) -> Result:
        result = runner.invoke(app, list(words), input=stdin, env={"PANDOMQ_URL": url, "COLUMNS": "200"})
        # Anything but an exit is a bug, and its stack says more than a code.
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def ask(type_: Type, api: FakeApi) -> Type:
    """The same, at the fake API."""
    return lambda *words, **options: type_(*words, **{"url": api.url, **options})
