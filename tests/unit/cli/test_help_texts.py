"""Every command, option and argument of `pandomq` is described by full sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

from pandomq.cli.config.keys import all_keys
from pandomq.cli.main import app
from tools.house_rules_strings import first_paragraph, help_breaches


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(app), "pandomq"))


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_needs_no_manual(path: str) -> None:
    command = COMMANDS[path]
    assert list(help_breaches(first_paragraph(command.help or ""))) == []
    for parameter in command.params:
        shown = getattr(parameter, "help", None)
        assert list(help_breaches(shown or "")) == [], parameter.opts


@pytest.mark.parametrize("path", COMMANDS)
def test_a_paragraph_of_help_is_one_line_and_a_flag_shows_no_type(path: str) -> None:
    command = COMMANDS[path]
    assert "\n" not in (command.help or "").replace("\n\n", "")
    flags = [one for one in command.get_params(typer.Context(command)) if getattr(one, "is_flag", False)]
    assert {flag.metavar for flag in flags} == {""}


@pytest.mark.parametrize("key", all_keys().values(), ids=lambda key: str(key.path))
def test_a_key_is_described(key: object) -> None:
    assert list(help_breaches(getattr(key, "description", ""))) == []
