"""Every block of the documents is run, or named in documented.py with the reason why it cannot be."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from pandomq.cli.main import app
from tests.support.shell import AMQP_PORT, HTTP_PORT, Shell, neighbours, one_broker, shell

from .documented import (
    CLUSTER_UP,
    COMMANDS,
    DOCS,
    NOT_RUN,
    PARSED,
    PYTHON,
    RUN_ELSEWHERE,
    TLS,
    Place,
    block_at,
    documented,
)
from .documented_brokers import begin_broker, in_sync, wait_while_alive

pytestmark = [pytest.mark.slow, pytest.mark.only_ours("the commands are ours"), pytest.mark.timeout(600)]

CONFIG_S: Final = 60.0
BY_LANGUAGE: Final = {"toml", "json"}
FOREIGN: Final = {"rabbitmqadmin": "a program of RabbitMQ's"}
"""First words of commands that are not run."""
PRIMARIES: Final = {"n1", "n2", "n3"}
ABSOLUTE: Final = re.compile(r'"(/[\w./-]+)"')


def places_in(*languages: str) -> list[Place]:
    return [place for place, block in documented().items() if block.language in languages]


def test_every_block_is_run_or_named() -> None:
    tables: list[set[Place]] = [
        set(NOT_RUN),
        set(RUN_ELSEWHERE),
        set(places_in(*BY_LANGUAGE)),
        COMMANDS,
        {CLUSTER_UP},
        PARSED,
        PYTHON,
        TLS,
    ]
    named = [place for table in tables for place in table]
    assert len(set(named)) == len(named), "a block is in two tables"
    assert set(documented()) == set(named)


def test_json() -> None:
    for place in places_in("json"):
        json.loads(block_at(place).text)


@pytest.mark.parametrize("place", places_in("toml"), ids=str)
def test_toml(place: Place, tmp_path: Path) -> None:
    """It loads as a configuration, beside the files with secrets that it names, and changes what it mentions."""
    text = ABSOLUTE.sub(lambda found: json.dumps(f"{tmp_path}{found[1]}"), block_at(place).text)
    for name in re.findall(r'_file = "(.+)"', text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("0123456789abcdef" * 4)
        file.chmod(0o600)
    config = tmp_path / "pandomq.toml"
    config.write_text(text)
    options = ["--name", "n1", "--config", str(config), "--json"]
    command = [sys.executable, "-m", "pandomq.cli.main", "config", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=CONFIG_S, check=False)
    assert done.returncode == 0, done.stderr
    changed = [key for key in json.loads(done.stdout)["keys"] if key["origin"] == "file"]
    assert changed


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    ports, listen = one_broker()
    with shell(tmp_path_factory.mktemp("documented") / "here", ports, **listen) as running:
        begin_broker(running, "pandomq start")
        yield running


@pytest.mark.parametrize("place", sorted(COMMANDS), ids=str)
def test_commands(started: Shell, place: Place) -> None:
    """In the order of the page, with the address, the login and the directory of this broker."""
    for command in block_at(place).commands:
        if command.split()[0] in FOREIGN:
            continue
        here = command.replace("user:password@host", "guest:guest@127.0.0.1")
        started.run(here.replace("/var/lib/pandomq/", f"{started.directory}/pandomq-data/n1/"))


def test_cluster_up(tmp_path: Path) -> None:
    ports = neighbours(3)
    (command,) = block_at(CLUSTER_UP).commands
    for option in (AMQP_PORT, HTTP_PORT):
        assert f" {option} " in command
    with shell(tmp_path / "here", ports) as running:
        running.begin(command)
        wait_while_alive(running, lambda: in_sync(ports[HTTP_PORT]) == PRIMARIES, "three brokers in sync")
        assert (running.directory / "DIR" / "cluster.key").exists()


@pytest.mark.parametrize("place", sorted(PARSED), ids=str)
def test_documented_commands_are_accepted(place: Place) -> None:
    makefile = (DOCS.parent / "Makefile").read_text()
    for command in block_at(place).commands:
        program, *words = shlex.split(command, comments=True)
        if program == "make":
            assert f"\n{words[0]}:" in makefile
        elif Path(program).name == "pytest":
            assert all((DOCS.parent / word).exists() for word in words if word.startswith("tests/"))
        else:
            assert Path(program).name == "pandomq"
            understand(words)


def understand(words: list[str]) -> None:
    """Raises an exception for an unknown command or option, or for a value that does not fit."""
    command: Any = typer.main.get_command(app)
    context: Any = None
    while hasattr(command, "get_command") and words != ["--help"]:
        context = command.context_class(command, parent=context)
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"no such command: {name}"
        command = found
    if words != ["--help"]:
        command.make_context(name, words, parent=context)


def test_unknown_commands_are_refused() -> None:
    for words in ("nothing", "pipeline nothing", "pipeline archive LAKE --nothing", "sim --nodes many"):
        with pytest.raises(Exception, match=r"(?i)no such|integer"):
            understand(words.split())
