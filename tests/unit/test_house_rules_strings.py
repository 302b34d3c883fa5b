"""The check of help texts, log lines and error messages finds what it is for, and lets the rest pass."""

from __future__ import annotations

import pytest

from tools.house_rules_strings import breaches

GOOD = [
    'typer.Option("--port", help="AMQP port of n1; later brokers use the following ports.")',
    'typer.Option("--what", hidden=True)',
    'log.info("the half-heard epoch ends")',
    'parser.add_argument("--rounds", type=int, help=f"Number of rounds (default {ROUNDS}).")',
    'log.info("broker %s is in sync", name)',
    'log.warning("what is wrong with %s? see %s", name, place)',
    'raise ValueError(f"{text!r} is not a number")',
    '@app.command()\ndef add() -> None:\n    """Adds a user without permissions."""',
    'def helper() -> None:\n    """no help text"""',
]
BAD = [
    'typer.Option("--port", help="The port.")',
    'typer.Option("--port", help="the AMQP port of n1.")',
    'typer.Option("--port", help="The AMQP port of n1")',
    'typer.Option("--dead", help="Who is gone for good.")',
    'typer.Argument(metavar="NAME")',
    'log.info("the root hears nothing from %s", name)',
    'raise ValueError(f"{name} has lost the office")',
    'Meta(description="Memory of one user. What is above it waits.")',
    'typer.Typer(name="users", help="Who may log in, and their tags.")',
    'log.info("Whoever comes late is refused")',
    'log.info("broker %s said that it is root", name)',
    'raise ValueError(f"this broker is beginning again ({reason})")',
    'log.warning("what was cut off is in %s", name)',
    'raise ValueError("what was typed is not UTF-8")',
    'raise ValueError(f"{name} is full. Who comes later waits")',
    '@app.command()\ndef add() -> None:\n    """What is in stores, and which is the newest."""',
]


@pytest.mark.parametrize("source", GOOD)
def test_good_texts_pass(source: str) -> None:
    assert list(breaches(source)) == []


@pytest.mark.parametrize("source", BAD)
def test_bad_texts_are_found(source: str) -> None:
    ((line, _),) = breaches(source)
    assert 1 <= line <= len(source.splitlines())
