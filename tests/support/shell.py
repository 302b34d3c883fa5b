"""Runs documented commands in bash, as a reader would paste them, in a directory of their own.

`pandomq` is this checkout's. The ports of the pages are replaced by free ones in commands, and PANDOMQ_URL leads a
command without a port to the test's broker, too.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pandomq
from tests.support import curl
from tests.support.ports import free_neighbours, free_ports

SOURCES: Final = Path(pandomq.__file__).parents[1]
PATIENCE_S: Final = 120.0
END_PATIENCE_S: Final = 60.0
PASSWORD: Final = "a password\n"
"""What commands read that ask for one."""
AMQP_PORT: Final = 5672
HTTP_PORT: Final = 15672
APART: Final = 100


class Shell:
    def __init__(self, directory: Path, ports: Mapping[int, int], **environment: str) -> None:
        """`ports`: which port stands for which port of the pages; HTTP_PORT is one of them."""
        self.directory = directory
        self.ports = dict(ports)
        programs = directory / "programs"
        programs.mkdir(parents=True)
        _write_program(programs / "pandomq", [sys.executable, "-m", "pandomq.cli.main"])
        if not _has_curl():
            _write_program(programs / "curl", [sys.executable, "-P", str(Path(curl.__file__))])
        clean = {name: text for name, text in os.environ.items() if not name.startswith("PANDOMQ_")}
        kept = {name: os.environ[name] for name in ("PANDOMQ_PLAIN",) if name in os.environ}
        self._environment = {
            **clean,
            **kept,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONUNBUFFERED": "1",
            "PANDOMQ_URL": f"http://guest:guest@127.0.0.1:{self.ports[HTTP_PORT]}",
            **environment,
        }
        self._begun: list[tuple[subprocess.Popen[bytes], Path]] = []

    def adapted(self, text: str) -> str:
        """With the ports of the test."""
        pattern = re.compile(r"(?<=[:\s])(" + "|".join(map(str, self.ports)) + r")\b")
        return pattern.sub(lambda found: str(self.ports[int(found[1])]), text)

    def run(self, command: str, stdin: str = PASSWORD, code: int = 0) -> str:
        """Insists on its exit code; gives its output."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self.adapted(command)],
            cwd=self.directory,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == code, f"{command!r} ended with {done.returncode}: {done.stderr}{done.stdout}"
        return done.stdout + done.stderr

    def begin(self, command: str) -> Path:
        """Starts a command that goes on, and does not wait; gives the file of its output."""
        output = self.directory / f"output-{len(self._begun)}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self.adapted(command)}"],
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self._begun.append((process, output))
        return output

    def insist_on_life(self) -> None:
        for process, output in self._begun:
            assert process.poll() is None, f"it ended with {process.returncode}:\n{output.read_text()}"

    def interrupt(self) -> None:
        """As ^C does; all of them have to end without an error."""
        for process, output in reversed(self._begun):
            process.send_signal(signal.SIGINT)
            assert process.wait(END_PATIENCE_S) == 0, output.read_text()
        self._begun.clear()

    def end(self) -> None:
        for process, _ in reversed(self._begun):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(END_PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def one_broker() -> tuple[dict[int, int], dict[str, str]]:
    """Free ports for a broker with the defaults of the pages, and the environment in which it listens there."""
    amqp, http = free_ports(2)
    listen = {"PANDOMQ_NODE_LISTEN": f"localhost:{amqp}", "PANDOMQ_NODE_HTTP": f"127.0.0.1:{http}"}
    return {AMQP_PORT: amqp, HTTP_PORT: http}, listen


def neighbours(count: int) -> dict[int, int]:
    """Free ports for so many brokers that are numbered as on the pages."""
    first = free_neighbours(count, apart=APART)
    amqp = {AMQP_PORT + number: first + number for number in range(count)}
    return amqp | {HTTP_PORT + number: first + APART + number for number in range(count)}


@contextmanager
def shell(directory: Path, ports: Mapping[int, int], **environment: str) -> Iterator[Shell]:
    """What it has begun is interrupted at the end."""
    made = Shell(directory, ports, **environment)
    try:
        yield made
        made.interrupt()
    finally:
        made.end()


def _write_program(path: Path, words: list[str]) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)


def _has_curl() -> bool:
    """With `--json`, which curl has had since 2022."""
    if shutil.which("curl") is None:
        return False
    options = subprocess.run(["curl", "--help", "all"], capture_output=True, text=True, check=False).stdout
    return "--json" in options
