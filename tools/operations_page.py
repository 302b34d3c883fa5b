"""Updates the output in docs/operations.md, from brokers that it starts, kills, replaces and promotes.

It needs root: the brokers are in a network namespace of their own, where their ports are free. It replaces each block
of the page that follows a line `<!-- output: NAME -->` by the typed command and its output. With names of stories
(three, virtual, split) it updates only their blocks.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import termios
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika
import pika.exceptions

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "operations.md"
PROGRAM = [sys.executable, "-m", "pandomq.cli.main"]
INSIDE = "--inside"
PATIENCE_S = 60.0
LOG_HEAD = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")


class Grove:
    """Brokers n1, n2, … on ports 5672, 5673, …"""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        (directory / "cluster.key").write_text("0123456789abcdef" * 4 + "\n")
        (directory / "cluster.key").chmod(0o600)

    def place(self, name: str) -> str:
        return f"127.0.0.1:{5671 + int(name[1:])}"

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{15671 + int(name[1:])}"

    def start(self, name: str, primaries: str = "n1 n2 n3", *, access: str = "redirect") -> None:
        """A broker that is not among the primaries joins them as a secondary."""
        names = primaries.split()
        members = ", ".join(f'"{one}={self.place(one)}"' for one in names)
        addresses = ", ".join(f'"{self.place(one)}"' for one in names)
        file = self._directory / f"{name}.toml"
        file.write_text(
            f'[node]\nname = "{name}"\nlisten = "{self.place(name)}"\nhttp = "{self.url(name)[7:]}"\n'
            f'data = "data/{name}"\n\n[cluster]\nkey_file = "cluster.key"\naccess = "{access}"\n'
            + (f"primaries = [{members}]\n" if name in names else f"join = [{addresses}]\n")
        )
        with (self._directory / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [*PROGRAM, "start", "--config", file.name],
                cwd=self._directory,
                stdout=log,
                stderr=log,
                env=_variables(),
            )
        self.until(lambda: self._answers(name), f"{name} to answer")

    def stop(self, *names: str) -> None:
        for name in names:
            broker = self._running.pop(name)
            broker.terminate()
            broker.wait()

    def kill(self, *names: str) -> None:
        for name in names:
            broker = self._running.pop(name)
            broker.kill()
            broker.wait()

    def wipe(self, name: str) -> None:
        shutil.rmtree(self._directory / "data" / name)

    def end(self) -> None:
        self.kill(*list(self._running))

    def until(self, fulfilled: Callable[[], bool], what: str) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not fulfilled():
            if time.monotonic() > end_s:
                said = "".join(log.read_text()[-2000:] for log in sorted(self._directory.glob("*.log")))
                raise SystemExit(f"waited in vain for {what}\n{said}")
            time.sleep(0.1)

    # Output of the brokers.

    def _answers(self, name: str) -> bool:
        try:
            urllib.request.urlopen(f"{self.url(name)}/readyz", timeout=2).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def health(self, name: str, check: str) -> int:
        try:
            with urllib.request.urlopen(f"{self.url(name)}/api/health/{check}", timeout=2) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def view(self) -> dict[str, Any]:
        """Returns the root's view of the cluster; empty while there is no root."""
        for name in self._running:
            found = subprocess.run(
                [*PROGRAM, "status", "--json", "--url", self.url(name)], capture_output=True, env=_variables()
            )
            view: dict[str, Any] = json.loads(found.stdout) if not found.returncode else {}
            if view and view["root"] == view["name"]:
                return view
        return {}

    def root(self) -> str:
        return str(self.view().get("root", ""))

    def wait_until_whole(self, count: int) -> None:
        def whole() -> bool:
            return sum(bool(one["in_sync"]) for one in self.view().get("members", ())) == count

        self.until(whole, f"{count} in sync")

    def log(self, name: str, mark: int) -> list[str]:
        lines = (self._directory / f"{name}.log").read_text().splitlines()[mark:]
        return [LOG_HEAD.sub("", line) for line in lines]

    def type(self, *words: str, at: str = "n1", answer: str = "") -> str:
        """Runs a command as an operator types it at a terminal, and returns its output."""
        asked = [*words, *([] if at == "n1" else ["--url", self.url(at)])]
        screen, terminal = os.openpty()
        _without_echo(terminal)
        program = subprocess.Popen(
            [*PROGRAM, *asked], cwd=self._directory, stdin=terminal, stdout=terminal, stderr=terminal, env=_variables()
        )
        os.close(terminal)
        os.write(screen, answer.encode())
        seen = _all_of(screen)
        if program.wait():
            raise SystemExit(f"{' '.join(asked)}: {seen}")
        # The terminal shows what is typed, too.
        lines = (line.rstrip() for line in seen.replace("[y/N]: ", f"[y/N]: {answer}").strip().splitlines())
        return "\n".join((f"$ pandomq {' '.join(asked)}", *lines))


def _without_echo(terminal: int) -> None:
    attributes = termios.tcgetattr(terminal)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def _all_of(screen: int) -> str:
    """Reads until the program at the terminal has ended."""
    seen = b""
    # The end of the last program at the terminal is an error here.
    with contextlib.suppress(OSError):
        while data := os.read(screen, 65536):
            seen += data
    os.close(screen)
    return seen.decode().replace("\r\n", "\n")


def _variables() -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PANDOMQ_")}
    return clean | {"COLUMNS": "100", "TERM": "dumb", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT / "src")}


def _parameters(grove: Grove, name: str, properties: dict[str, Any] | None = None) -> pika.ConnectionParameters:
    return pika.ConnectionParameters(
        "127.0.0.1", int(grove.place(name).rpartition(":")[2]), client_properties=properties
    )


def _refusal(grove: Grove, backup: str, properties: dict[str, Any] | None = None) -> str:
    try:
        pika.BlockingConnection(_parameters(grove, backup, properties)).close()
    except pika.exceptions.AMQPError as error:
        found = re.search(r"\(320\) '?(CONNECTION_FORCED[^'\")]*)", repr(error))
        if found is not None:
            return found[1]
    raise SystemExit(f"{backup} lets clients in")


def three(grove: Grove) -> dict[str, str]:
    """One cluster, from its start to the loss of most of its brokers."""
    blocks: dict[str, str] = {}
    grove.start("n1")
    try:
        urllib.request.urlopen(f"{grove.url('n1')}/readyz")
    except urllib.error.HTTPError as error:
        blocks["waiting"] = f"$ curl {grove.url('n1')}/readyz\n{error.read().decode().strip()}"
    grove.start("n2")
    grove.start("n3")
    grove.wait_until_whole(3)
    blocks["status"] = grove.type("status", at=grove.root())
    blocks["refusal"] = _refusal(grove, "n1" if grove.root() != "n1" else "n2")
    heir = "n3" if grove.root() != "n3" else "n1"
    blocks["promote"] = grove.type("promote", heir)
    grove.until(lambda: grove.root() == heir, "the hand-over")
    grove.wait_until_whole(3)
    grove.start("n4", "n1 n2 n3 n4")
    grove.until(lambda: len(grove.view().get("members", ())) == 4, "n4")
    add = grove.type("members", "add", f"n4={grove.place('n4')}")
    grove.wait_until_whole(4)
    blocks["add"] = f"{add}\n{grove.type('members', at=grove.root())}"
    blocks["remove"] = grove.type("members", "remove", "n4")
    grove.stop("n4")
    lost = "n2" if grove.root() != "n2" else "n1"
    grove.kill(lost)
    grove.wipe(lost)
    mark = len(grove.log(lost, 0))
    grove.start(lost)
    grove.wait_until_whole(3)
    told = re.compile(
        r"is not yet part of a cluster|linked with|restarting broker state|broker n\d is (learner|backup) .* root is n"
    )
    blocks["replace"] = "\n".join(line for line in grove.log(lost, mark) if told.search(line))
    dead = grove.root()
    grove.kill(dead)
    grove.until(lambda: grove.root() not in ("", dead), "the next root")
    grove.wait_until_whole(2)
    blocks["takeover"] = grove.type("status", at=grove.root())
    left = next(name for name in ("n1", "n2", "n3") if name not in (dead, grove.root()))
    gone = sorted({"n1", "n2", "n3"} - {left})
    grove.kill(grove.root())
    forced = grove.type("promote", left, "--force", "--dead", ",".join(gone), at=left, answer="y\n")
    grove.until(lambda: grove.root() == left, "the forced promotion")
    blocks["forced"] = f"{forced}\n{grove.type('status', at=left)}"
    grove.start(gone[0])
    grove.until(lambda: len(grove.view().get("members", ())) == 2, "the one that comes back")
    blocks["again"] = grove.type("members", "add", f"{gone[0]}={grove.place(gone[0])}", at=left)
    return blocks


def virtual(grove: Grove) -> dict[str, str]:
    """Brokers that all serve clients, and a secondary that comes and goes."""
    blocks: dict[str, str] = {}
    for name in ("n1", "n2", "n3"):
        grove.start(name, access="proxy")
    grove.wait_until_whole(3)
    grove.start("n4", access="proxy")
    grove.wait_until_whole(4)
    names = ("n1", "n2", "n3", "n4")
    grove.until(lambda: all(grove.health(name, "clients") == 200 for name in names), "all to serve clients")
    lines = []
    for check in ("clients", "root"):
        for name in names:
            lines += [f"$ curl -o /dev/null -sw '%{{http_code}}\\n' {grove.url(name)}/api/health/{check}"]
            lines += [str(grove.health(name, check))]
    blocks["health"] = "\n".join(lines)
    clients = [pika.BlockingConnection(_parameters(grove, name)) for name in (*names, "n4")]
    counted = [1, 1, 1, 2]
    grove.until(lambda: [one["connections"] for one in grove.view().get("members", ())] == counted, "the clients")
    blocks["secondary"] = grove.type("members", at=grove.root())
    backup = next(name for name in names if name != grove.root())
    blocks["to_root"] = _refusal(grove, backup, {"connect_to_root": True})
    for client in clients:
        client.close()
    return blocks


def split(grove: Grove) -> dict[str, str]:
    """Two brokers, each of which is promoted without the other."""
    for name in ("n1", "n2"):
        grove.start(name, "n1 n2")
    grove.wait_until_whole(2)
    grove.stop("n1", "n2")
    for name, other in (("n1", "n2"), ("n2", "n1")):
        grove.start(name, "n1 n2")
        key = ("--key-file", "cluster.key")
        grove.type("promote", name, "--force", "--dead", other, *key, at=name, answer="y\n")
        grove.until(lambda name=name: grove.root() == name, f"{name} as root")  # type: ignore[misc]
        grove.stop(name)
    for name in ("n1", "n2"):
        grove.start(name, "n1 n2")
    grove.until(lambda: bool(grove.view().get("alarms")), "the alarm")
    return {"split": grove.type("status", at="n2")}


def rewritten(page: str, blocks: dict[str, str]) -> str:
    for name, text in blocks.items():
        marked = re.compile(rf"( *)<!-- output: {name} -->\n *```\n.*?\n *```\n", re.DOTALL)
        found = marked.search(page)
        if found is None:
            raise SystemExit(f"there is no block {name} in the page")
        lines = [f"<!-- output: {name} -->", "```", *text.splitlines(), "```"]
        block = "".join(f"{found[1] if line else ''}{line}\n" for line in lines)
        page = page[: found.start()] + block + page[found.end() :]
    return page


def main() -> int:
    if INSIDE not in sys.argv:
        return subprocess.call(["unshare", "--net", sys.executable, __file__, INSIDE, *sys.argv[1:]])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    blocks: dict[str, str] = {}
    stories = [story for story in (three, virtual, split) if story.__name__ in sys.argv or len(sys.argv) == 2]
    for story in stories:
        with tempfile.TemporaryDirectory(prefix="pandomq-operations-") as directory:
            grove = Grove(Path(directory))
            try:
                blocks |= story(grove)
            finally:
                grove.end()
    PAGE.write_text(rewritten(PAGE.read_text(), blocks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
