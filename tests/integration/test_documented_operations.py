"""The commands of docs/operations.md, as one story: a cluster is formed, changed, restarted, broken and repaired."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.support.markdown import Block, Key, block
from tests.support.shell import HTTP_PORT, Shell, neighbours, shell

from .documented_brokers import FORMING_S, in_sync, is_ok, wait_while_alive
from .waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.only_ours("the commands are ours"), pytest.mark.timeout(900)]

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations.md"
FOUND: Final = ("Form a cluster", 1)
WAITING: Final = ("Form a cluster", 2)
STATUS: Final = ("Form a cluster", 3)
HEALTH: Final = ("Connect clients", 1)
RESTART: Final = ("Restart and upgrade", 1)
PROMOTE: Final = ("Restart and upgrade", 2)
ADD: Final = ("Add a broker", 1)
SECONDARY: Final = ("Add a broker", 3)
REMOVE: Final = ("Remove a broker", 1)
WITHOUT_ROOT: Final = ("Manual intervention", 1)
FORCE: Final = ("Manual intervention", 2)
AGAIN: Final = ("Manual intervention", 3)
SPLIT: Final = ("Both sides were promoted", 1)
RUN: Final[set[Key]] = {
    FOUND, WAITING, STATUS, HEALTH, RESTART, PROMOTE, ADD, SECONDARY, REMOVE, WITHOUT_ROOT, FORCE, AGAIN, SPLIT
}  # fmt: skip
PRIMARIES: Final = ("n1", "n2", "n3")
CONFIGURATION: Final = "cat n1.toml"
CONFIRMED: Final = "--yes"
"""There is no terminal that could be asked, as it is on the page."""


class Story:
    def __init__(self, running: Shell) -> None:
        self.running = running
        self.first_http = running.ports[HTTP_PORT]
        self._pids: list[int] = []

    def found(self, page_block: Block) -> None:
        """Runs n1 as the block says; its lines after `cat` are the file, from which those of the others are made."""
        before, _, after = page_block.text.partition(f"$ {CONFIGURATION}\n")
        text, _, start = after.partition("$ ")
        (make_key,) = before.splitlines()
        self.running.run(make_key.removeprefix("$ "))
        for number in range(1, 5):
            self.write_configuration(text, number)
        self.begin(start.strip())

    def write_configuration(self, text: str, number: int) -> None:
        node, _, cluster = text.partition("[cluster]")
        for old in ('name = "n1"', "data/n1"):
            node = node.replace(old, old.replace("n1", f"n{number}"))
        node = node.replace("5672", str(5671 + number))
        file = self.running.directory / f"n{number}.toml"
        file.write_text(self.running.adapted(f"{node}[cluster]{cluster}"))

    def begin(self, command: str) -> None:
        """In the background of a shell, so that it is ended by its pid."""
        self._pids.append(int(self.running.run(f"{command} >> output 2>&1 & echo $!")))

    def run(self, key: Key, stdin: str = "") -> str:
        return "".join(self.running.run(command, stdin) for command in block(PAGE, key).commands)

    def promote(self, name: str, key: Key) -> None:
        """By the page's command, for this broker, unless it is the root."""
        port = self.running.ports[HTTP_PORT + PRIMARIES.index(name)]
        if not is_ok(port, "/api/health/root"):
            (command,) = block(PAGE, key).commands
            url = f"http://127.0.0.1:{port}"
            command = re.sub(r"promote n\d", f"promote {name}", command)
            assert f"handed over to {name}" in self.running.run(f"{command} --url {url}")
        wait_until(lambda: is_ok(port, "/api/health/root"), f"{name} as root", FORMING_S)

    def wait_until_in_sync(self, *names: str) -> None:
        wait_while_alive(self.running, lambda: in_sync(self.first_http) == set(names), f"{names} in sync")

    def wait_until_it_listens(self, port: int) -> None:
        """`port` as on the page."""
        wait_until(lambda: is_ok(self.running.ports[port], "/healthz"), f"a broker at {port}", FORMING_S)

    def pid_file(self, name: str) -> Path:
        return self.running.directory / "data" / name / "pid"

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Returns when the broker is gone."""
        pid = int(self.pid_file(name).read_text())
        os.kill(pid, number)
        wait_until(lambda: not is_alive(pid), f"the end of {name}")

    def end(self) -> None:
        """Also of brokers that have not yet written their pid."""
        for pid in filter(is_alive, self._pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_alive(pid), f"the end of {pid}")  # type: ignore[misc]


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    with shell(tmp_path / "here", neighbours(4)) as running:
        made = Story(running)
        try:
            yield made
        finally:
            made.end()


def test_the_documented_operations_work_in_sequence(story: Story) -> None:
    """The order is not the page's: the page is ordered by what an operator does, and here each step happens once."""
    form(story)
    add_and_remove(story)
    join_a_secondary(story)
    restart(story)
    break_and_repair(story)


def form(story: Story) -> None:
    story.found(block(PAGE, FOUND))
    story.wait_until_it_listens(15672)
    wait_until(lambda: "waiting for n2, n3" in story.run(WAITING), "a broker that waits", FORMING_S)
    for name in ("n2", "n3"):
        story.begin(f"pandomq start --config {name}.toml")
    story.wait_until_in_sync(*PRIMARIES)
    assert all(name in story.run(STATUS) for name in PRIMARIES)


def add_and_remove(story: Story) -> None:
    """n4 has the future list of primaries."""
    file = story.running.directory / "n4.toml"
    own = f'"n4=127.0.0.1:{story.running.ports[5675]}"'
    file.write_text(file.read_text().replace('"]', f'", {own}]'))
    story.begin("pandomq start --config n4.toml")
    story.wait_until_it_listens(15675)
    assert "n4 is now a primary" in story.run(ADD)
    story.wait_until_in_sync(*PRIMARIES, "n4")
    assert "n4 is no longer a primary" in story.run(REMOVE)
    story.kill("n4", signal.SIGTERM)


def join_a_secondary(story: Story) -> None:
    ports = story.running.ports
    join = f"--join 127.0.0.1:{ports[5672]},127.0.0.1:{ports[5673]}"
    listen = f"--listen 127.0.0.1:{ports[5675]} --http 127.0.0.1:{ports[15675]} --data data/n4"
    story.begin(f"PANDOMQ_CLUSTER_KEY_FILE=cluster.key pandomq start --name n4 {join} {listen}")
    wait_until(lambda: is_ok(ports[15675], "/api/health/clients"), "a secondary that serves clients", FORMING_S)
    wait_until(lambda: "secondary" in story.run(SECONDARY), "a secondary among the members", FORMING_S)
    codes = story.run(HEALTH).split()
    assert codes[:4] == ["200"] * 4 and sorted(codes[4:]) == ["200", "503", "503", "503"]
    story.kill("n4", signal.SIGTERM)
    story.wait_until_in_sync(*PRIMARIES)


def restart(story: Story) -> None:
    """Of the root, which has to hand over before it ends."""
    story.promote("n1", PROMOTE)
    before = story.pid_file("n1").read_text()
    stop, start, until_ready = block(PAGE, RESTART).commands
    story.running.run(stop)
    story.begin(start.removesuffix("&"))
    story.running.run(until_ready)
    wait_until(lambda: story.pid_file("n1").read_text() not in ("", before), "another n1", FORMING_S)
    story.wait_until_in_sync(*PRIMARIES)


def break_and_repair(story: Story) -> None:
    """As on the page n3 fails, and then n1, which is the root. So n2, which remains, is a backup that still knows its
    users."""
    port = story.running.ports[15673]
    story.promote("n1", PROMOTE)
    story.kill("n3")
    story.wait_until_in_sync("n1", "n2")
    assert "absent" in story.run(WITHOUT_ROOT)
    # A root that has handed over is ready, and restarts its state a moment later; before that it serves no clients.
    wait_until(lambda: is_ok(port, "/api/health/clients"), "n2, which may have handed over", FORMING_S)
    story.kill("n1")
    wait_until(lambda: not is_ok(port, "/api/health/root"), "the end of the root", FORMING_S)
    force, status = block(PAGE, FORCE).commands
    assert "was created without n1, n3" in story.running.run(f"{force} {CONFIRMED}")
    wait_until(lambda: "the last promotion was forced" in story.running.run(status), "a root", FORMING_S)
    story.begin("pandomq start --config n1.toml")
    story.wait_until_it_listens(15672)
    assert "n1 is now a primary" in story.run(AGAIN)
    assert "n2" in story.run(SPLIT)
