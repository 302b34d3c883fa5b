"""`pandomq cluster up` and the commands for clusters, on real processes: form, configure, lose a broker, and stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pika
import psutil
import pytest

from tests.support.http import NO_TLS
from tests.support.ports import free_neighbours

from .waiting import PATIENCE_S, wait_until

NAMES = ("n1", "n2", "n3")
SECONDARY = "n4"
FORMING_S = 60.0
"""A busy machine needs some time to start three brokers."""
LOGIN = "guest:guest@"
BEGINNING = "restarting broker state from disk: this broker hands over"


class Grove:
    """A cluster, and the `cluster up` that runs it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_neighbours(len(NAMES) + 1)
        self.output = directory / "output"
        self._ups: list[subprocess.Popen[bytes]] = []

    def up(self, *more: str) -> subprocess.Popen[bytes]:
        words = [
            "cluster",
            "up",
            "--port",
            str(self.port),
            "--http-port",
            str(self.port + 100),
            "--data",
            "grove",
            *more,
        ]
        with self.output.open("ab") as output:
            up = subprocess.Popen(command(*words), cwd=self.directory, stdout=output, stderr=output, env=environment())
        self._ups.append(up)
        return up

    def url(self, name: str, login: str = "") -> str:
        return f"http://{login}127.0.0.1:{self.port_of(name) + 100}"

    def port_of(self, name: str) -> int:
        return self.port + (*NAMES, SECONDARY).index(name)

    def get(self, name: str, path: str) -> httpx.Response | None:
        try:
            return httpx.get(self.url(name) + path, auth=("guest", "guest"), timeout=PATIENCE_S, verify=NO_TLS)
        except httpx.HTTPError:
            return None

    def is_ok(self, name: str, check: str) -> bool:
        answer = self.get(name, f"/api/health/{check}")
        return answer is not None and answer.status_code == 200

    def roots(self) -> list[str]:
        return [name for name in NAMES if self.is_ok(name, "root")]

    def root(self) -> str:
        wait_until(self.roots, "a root", FORMING_S)
        (root,) = self.roots()
        return root

    def wait_until_whole(self) -> None:
        wait_until(
            lambda: all(self.is_ok(name, "ready") for name in (*NAMES, SECONDARY)), "all brokers ready", FORMING_S
        )
        root = self.root()
        wait_until(lambda: all(member["in_sync"] for member in self.members(root)), "all brokers in sync")

    def members(self, name: str) -> list[dict[str, Any]]:
        members: list[dict[str, Any]] = self.status(name)["members"]
        return members

    def status(self, name: str) -> dict[str, Any]:
        answer = self.get(name, "/api/cluster")
        if answer is None or answer.status_code == 503:
            # On a busy machine a root may be deposed at any time; until it has read its log it does not know its users.
            wait_until(lambda: self.is_ok(name, "ready"), f"{name} to be ready")
            answer = self.get(name, "/api/cluster")
        assert answer is not None and answer.status_code == 200
        status: dict[str, Any] = answer.json()
        return status

    def ask(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on one of them."""
        return subprocess.run(
            command(*words, "--url", self.url(name, LOGIN)),
            capture_output=True,
            text=True,
            timeout=FORMING_S,
            env=environment(),
            check=False,
        )

    def log(self, name: str) -> str:
        return (self.directory / "grove" / name / "log").read_text()

    def pid_files(self) -> list[Path]:
        return [file for file in (self.directory / "grove").glob("*/pid") if psutil.pid_exists(int(file.read_text()))]

    def pid(self, name: str) -> int:
        return int((self.directory / "grove" / name / "pid").read_text())

    def lines(self) -> list[str]:
        return self.output.read_text().splitlines()

    def clear_away(self) -> None:
        """Ends all processes that a test left running."""
        for up in self._ups:
            if up.poll() is None:
                up.terminate()
                up.wait(FORMING_S)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pandomq.cli.main", *words]


def environment() -> dict[str, str]:
    return {
        name: text for name, text in os.environ.items() if not name.startswith("PANDOMQ_") or name == "PANDOMQ_PLAIN"
    }


@pytest.fixture(scope="module")
def grove(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grove]:
    made = Grove(tmp_path_factory.mktemp("grove"))
    up = made.up("--secondaries", "1")
    try:
        made.wait_until_whole()
        yield made
        pids = [int(file.read_text()) for file in made.pid_files()]
        up.send_signal(signal.SIGINT)
        assert up.wait(FORMING_S) == 0, made.output.read_text()
        assert not any(psutil.pid_exists(pid) for pid in pids)
        assert not made.pid_files()
    finally:
        made.clear_away()


def backups(grove: Grove) -> list[str]:
    root = grove.root()
    return [name for name in NAMES if name != root]


def test_three_brokers_are_one_cluster(grove: Grove) -> None:
    root = grove.root()
    seen = [grove.status(name) for name in NAMES]
    assert len({(status["cluster"], status["root"], status["term"]) for status in seen}) == 1
    assert seen[0]["root"] == root
    for status in seen:
        roles = {member["name"]: member["role"] for member in status["members"]}
        assert roles.pop(SECONDARY) == "secondary"
        assert roles == {name: "root" if name == root else "backup" for name in NAMES}
        assert [link["linked"] for link in status["links"]] == [True, True, True]
        assert all(psutil.pid_exists(grove.pid(name)) for name in NAMES)
    shown = grove.ask(root, "status", "--json")
    assert shown.returncode == 0 and f'"root": "{root}"' in shown.stdout
    key = grove.directory / "grove" / "cluster.key"
    assert key.stat().st_mode & 0o077 == 0


def test_a_change_finds_the_root_from_any_broker(grove: Grove) -> None:
    for name in NAMES:
        done = httpx.put(f"{grove.url(name)}/api/vhosts/from {name}", auth=("guest", "guest"), timeout=PATIENCE_S)
        assert done.status_code == 201, done.text
    wait_until(lambda: all(has_vhosts(grove, name) for name in NAMES), "the vhosts on all brokers")
    answer = httpx.put(
        grove.url(backups(grove)[0]) + "/api/queues/%2F/q",
        json={"durable": True},
        auth=("guest", "wrong"),
        timeout=PATIENCE_S,
    )
    assert answer.status_code == 401


def has_vhosts(grove: Grove, name: str) -> bool:
    answer = grove.get(name, "/api/vhosts")
    return answer is not None and {f"from {one}" for one in NAMES} <= {vhost["name"] for vhost in answer.json()}


@pytest.mark.proves("R12")
def test_every_broker_serves_clients(grove: Grove) -> None:
    place = f"127.0.0.1:{grove.port_of(grove.root())}"
    for number, name in enumerate((*NAMES, SECONDARY)):
        wait_until(lambda name=name: grove.is_ok(name, "clients"), f"{name} to serve clients")  # type: ignore[misc]
        parameters = pika.ConnectionParameters("127.0.0.1", grove.port_of(name))
        with pika.BlockingConnection(parameters) as connection:
            assert connection._impl.server_properties["root"] == place
            channel = connection.channel()
            # It is one queue on every broker; each test leaves one more message.
            assert channel.queue_declare("shared", durable=True).method.message_count == number
            channel.confirm_delivery()
            channel.basic_publish("", "shared", b"", mandatory=True)


def test_a_large_request_finds_the_root_from_any_broker(grove: Grove) -> None:
    """The request is split into many parts on the link, which carries the log at the same time."""
    queues = [{"name": f"imported.{number:05}", "vhost": "/", "durable": True} for number in range(5_000)]
    done = httpx.post(
        f"{grove.url(backups(grove)[0])}/api/definitions",
        json={"queues": queues},
        auth=("guest", "guest"),
        timeout=FORMING_S,
    )
    assert done.status_code == 204, done.text
    shown = grove.get(grove.root(), "/api/queues/%2F/imported.04999")
    assert shown is not None and shown.status_code == 200


def test_the_keys_make_an_administrator_at_any_broker(grove: Grove) -> None:
    directory = grove.directory / "grove"
    for number, key in enumerate((directory / "cluster.key", directory / backups(grove)[0] / "own.key")):
        words = ("users", "add", f"back{number}", "--tags", "administrator")
        done = subprocess.run(
            command(*words, "--key-file", str(key), "--url", grove.url(backups(grove)[0])),
            input="a secret\n",
            capture_output=True,
            text=True,
            timeout=FORMING_S,
            env=environment(),
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, f"user 'back{number}' added\n")


@pytest.mark.parametrize("asked", [0, 2])
def test_the_root_hands_over(grove: Grove, asked: int) -> None:
    """Any broker may be asked for it: the root, or another backup."""
    old, (new, other) = grove.root(), backups(grove)
    beginnings = grove.log(old).count(BEGINNING)
    done = grove.ask((old, new, other)[asked], "promote", new)
    assert (done.returncode, done.stderr) == (0, f"handed over to {new}\n")
    wait_until(lambda: grove.roots() == [new], f"{new} as root")
    # The old root closes its clients' connections and restarts; until it has read its log it knows no user.
    wait_until(lambda: grove.log(old).count(BEGINNING) > beginnings, f"{old} to begin again")
    wait_until(lambda: f"the root is {new}" in grove.log(old).rpartition(BEGINNING)[2], f"{old} to follow {new}")
    grove.wait_until_whole()
    assert [election["root"] for election in grove.status(old)["elections"]][-2:] == [old, new]


def test_a_forced_promotion_is_refused_while_there_is_a_root(grove: Grove) -> None:
    root, (backup, other) = grove.root(), backups(grove)
    done = grove.ask(other, "promote", backup, "--force", "--dead", root, "--yes")
    assert done.returncode == 1
    refusal = f"{root} is root and was in contact just now: wait for that root, or stop it"
    assert done.stderr.splitlines()[-1] == f"pandomq: {refusal}"
    assert grove.roots() == [root]


def test_a_primary_goes_and_comes(grove: Grove) -> None:
    root, (asked, away) = grove.root(), backups(grove)
    address = f"127.0.0.1:{grove.port_of(away)}"
    assert grove.ask(asked, "members", "remove", away).returncode == 0
    assert away not in {member["name"] for member in grove.members(root) if member["role"] in ("root", "backup")}
    done = grove.ask(asked, "members", "add", f"{away}={address}")
    assert (done.returncode, done.stderr) == (0, f"{away} is now a primary\n")
    grove.wait_until_whole()


def test_a_broker_that_dies_stays_down_until_it_is_started_again(grove: Grove) -> None:
    dead = grove.root()
    os.kill(grove.pid(dead), signal.SIGKILL)
    wait_until(lambda: any("killed by SIGKILL" in line for line in grove.lines()), "a line about it")
    new = grove.root()
    assert new != dead
    assert {member["name"]: member["role"] for member in grove.members(new)}[dead] == "absent"
    again = grove.up("--only", dead)
    grove.wait_until_whole()
    assert grove.root() == new
    pid = grove.pid(dead)
    critical = grove.get(new, "/api/health/checks/node-is-quorum-critical")
    assert critical is not None and critical.status_code == 200
    again.send_signal(signal.SIGTERM)
    assert again.wait(FORMING_S) == 0
    assert not psutil.pid_exists(pid)
    assert grove.root() == new


def test_brokers_that_cannot_start_are_reported(tmp_path: Path) -> None:
    grove = Grove(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", grove.port))
        taken.listen()
        up = grove.up("--primaries", "1")
        assert up.wait(FORMING_S) == 1
    assert "Another program listens on this address" in grove.lines()[-1]
