"""README's blocks, run as they stand with other ports; tests/spark/test_readme.py runs those that need Spark."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pika
import pytest

from tests.support.markdown import Key, block, blocks_of
from tests.support.shell import AMQP_PORT, HTTP_PORT, Shell, neighbours, one_broker, shell

from .documented_brokers import begin_broker, in_sync, wait_while_alive

pytestmark = [pytest.mark.only_ours("the commands are ours"), pytest.mark.timeout(300)]

README: Final = Path(__file__).parents[2] / "README.md"
PROGRAM_S: Final = 60.0
START: Final = ("Start a broker and connect", 1)
PIKA: Final = ("Start a broker and connect", 2)
CLUSTER: Final = ("Run a cluster", 1)
ADMINISTER: Final = ("Observe and administer", 1)
RUN: Final = {START, PIKA, CLUSTER, ADMINISTER}
RUN_WITH_SPARK: Final = {("Use Spark", 1), ("Use Spark", 2)}
NOT_RUN: Final[dict[Key, str]] = {
    ("PandoMQ", 1): "targets of the Makefile: tests/integration/test_demo.py runs the demo, and `make test` runs this",
    ("PandoMQ", 2): "a drawing",
    ("Install", 1): "tests/packaging installs the package",
    ("Run a cluster", 2): "output",
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A broker by README's first command, in the directory of its data."""
    ports, listen = one_broker()
    with shell(tmp_path_factory.mktemp("readme") / "here", ports, **listen) as running:
        begin_broker(running, block(README, START).commands[0])
        yield running


def test_every_block_is_run_or_named() -> None:
    keys = [one.key for one in blocks_of(README)]
    assert len(set(keys)) == len(keys)
    assert not (RUN & RUN_WITH_SPARK or (RUN | RUN_WITH_SPARK) & NOT_RUN.keys())
    assert set(keys) == RUN | RUN_WITH_SPARK | NOT_RUN.keys()


def test_targets_of_the_makefile_exist() -> None:
    makefile = README.with_name("Makefile").read_text()
    for command in block(README, ("PandoMQ", 1)).commands:
        make, target, *_ = command.split()
        assert make == "make" and f"\n{target}:" in makefile


@pytest.mark.parametrize("number", range(len(block(README, START).commands)))
def test_start(number: int, tmp_path: Path) -> None:
    """Both commands listen where their comments say, and let guest in from the loopback."""
    command = block(README, START).commands[number]
    ports, listen = one_broker()
    with shell(tmp_path / "here", ports, **listen) as running:
        begin_broker(running, command)
        port = running.ports[AMQP_PORT]
        places = ["127.0.0.1", *(["::1"] if "[::1]" in command and has_ipv6() else [])]
        for host in places:
            credentials = pika.PlainCredentials("guest", "guest")
            pika.BlockingConnection(pika.ConnectionParameters(host, port, credentials=credentials)).close()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_pika(started: Shell) -> None:
    code = started.adapted(block(README, PIKA).text)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "Hello, Pando!" in done.stdout


def test_observe_and_administer(started: Shell) -> None:
    outputs = {command: started.run(command) for command in block(README, ADMINISTER).commands}
    (status,) = (output for command, output in outputs.items() if command.startswith("pandomq status"))
    assert "root" in status
    (overview,) = (output for command, output in outputs.items() if command.startswith("curl"))
    assert "pandomq_version" in overview or "rabbitmq_version" in overview
    assert (started.directory / "DIR").is_dir()
    users = started.run("pandomq users list --json")
    assert "ann" in {user["name"] for user in json.loads(users)}


def test_run_a_cluster(tmp_path: Path) -> None:
    """Three brokers form a cluster; n2 is killed; the others go on; n2 returns as a backup."""
    ports = neighbours(3)
    first_http = ports[HTTP_PORT]
    where = f"--port {ports[AMQP_PORT]} --http-port {first_http}"

    def with_ports(command: str) -> str:
        words, _, comment = command.partition("#")
        return f"{words.rstrip()} {where}  # {comment}" if " up" in words else command

    with shell(tmp_path / "here", ports) as running:
        up, kill, again = map(with_ports, block(README, CLUSTER).commands)
        running.begin(up)
        wait_while_alive(running, lambda: in_sync(first_http) == {"n1", "n2", "n3"}, "three brokers in sync")
        pid_file = running.directory / "pandomq-cluster" / "n2" / "pid"
        first_pid = pid_file.read_text()
        running.run(kill)
        wait_while_alive(running, lambda: in_sync(first_http) == {"n1", "n3"}, "a cluster without n2")
        running.begin(again)
        wait_while_alive(running, lambda: in_sync(first_http) == {"n1", "n2", "n3"}, "n2 in sync again")
        assert pid_file.read_text() != first_pid
        assert "role" in running.run("pandomq members")
