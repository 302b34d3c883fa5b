"""Starts `pandomq start` for tests: as a user would, or quickly.

A start takes half a second of processor time, most of it for imports, and `make test` starts hundreds of brokers. With
`--quick` a program that has imported everything (`prepared.py`) makes a copy of itself for each broker. Two such
programs take turns, so that brokers of a cluster differ in the hashes of their strings. Everything else is as with a
start from nothing: arguments, environment, directory, output, process id, signals and exit code.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pandomq

SOURCES = Path(pandomq.__file__).parents[1]
COMMAND = [sys.executable, "-m", "pandomq.cli.main"]
PATH = os.environ.get("PYTHONPATH")
PROGRAMS = 2
SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl(2)."""


def python_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that change what the interpreter or its libraries do, except for the usual ones."""
    usual = {"PYTHONUNBUFFERED": ("1",), "PYTHONPATH": (str(SOURCES), PATH)}
    return {
        name: text
        for name, text in environment.items()
        if name.startswith(("PYTHON", "LD_")) and text not in usual.get(name, ())
    }


PYTHON = python_of(os.environ)
_quick = False
_programs: list[Prepared] = []
_turns = itertools.count()
_one_at_a_time = threading.Lock()


def quick() -> None:
    global _quick
    _quick = True


def start(
    command: Sequence[str], output: IO[bytes], environment: Mapping[str, str], directory: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts the command; only `pandomq start`, without words in front of it or another Python, can be quick."""
    usual = list(command[:4]) == [*COMMAND, "start"] and python_of(environment) == PYTHON
    if not _quick or not usual:
        return subprocess.Popen(
            command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    while len(_programs) < PROGRAMS:
        _programs.append(Prepared())
    return _programs[next(_turns) % PROGRAMS].start(command, output, environment, directory or Path.cwd())


class Copy(subprocess.Popen[bytes]):
    """A child that another program has made."""

    def __init__(self, pid: int, arguments: Sequence[str]) -> None:
        # The constructor of the base would start a process. A process that has ended already is the quickest.
        super().__init__(["/bin/true"], stdin=subprocess.DEVNULL)
        super().wait()
        self.args = arguments
        self.pid = pid
        self.returncode: Any = None


class Prepared:
    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(SOURCES)}
        program = Path(__file__).with_name("prepared.py")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(program)], stdin=theirs.fileno(), env=environment
            )
        atexit.register(self._end)

    def start(
        self, command: Sequence[str], output: IO[bytes], environment: Mapping[str, str], directory: Path
    ) -> subprocess.Popen[bytes]:
        arguments = list(command[len(COMMAND) :])
        request = {"arguments": arguments, "directory": str(directory), "environment": dict(environment)}
        with _one_at_a_time:
            # While this holds, children whose parents end become ours.
            adopt_orphans(1)
            try:
                socket.send_fds(self._requests, [json.dumps(request).encode()], [output.fileno()])
                pid = int(self._requests.recv(100))
            finally:
                adopt_orphans(0)
        return Copy(pid, command)

    def _end(self) -> None:
        self._requests.close()
        self._process.wait()


def adopt_orphans(on: int) -> None:
    assert ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, on, 0, 0, 0) == 0
