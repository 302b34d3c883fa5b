"""One broker as a child process, started the way a person starts it.

Decides nothing about the broker but whether it lives: it accepts, it is still running, it wrote no unhandled
exception into its log. Callers must call `stop` (or `kill`); both end exactly the process that `start` began.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0
ACCEPT_POLL_S = 0.05
LOG_TAIL_CHARS = 8000

# What a program prints when an exception reached nobody.
UNHANDLED_SIGNS = ("Traceback (most recent call last)", "exception was never retrieved", "Fatal Python error")


class BrokerDied(AssertionError):
    """The broker ended, never answered, or logged an exception that nobody handled."""


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class BrokerProcess:
    def __init__(self, directory: Path, *, port: int | None = None, environment: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.port = port if port is not None else free_port()
        self.log_path = directory / "broker.log"
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._checked_chars = 0

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._log = self.log_path.open("ab")
        command = [sys.executable, "-m", "pandomq.cli.main", "start", "--name", "t"]
        command += ["--listen", f"127.0.0.1:{self.port}", "--data", str(self.directory / "data")]
        self._process = subprocess.Popen(
            command,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self._environment},
        )
        self._wait_until_it_accepts()

    def _wait_until_it_accepts(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            self._fail_if_ended()
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(ACCEPT_POLL_S)
            else:
                return
        raise BrokerDied(f"the broker accepts nothing after {START_TIMEOUT_S} s\n{self._tail()}")

    def check(self) -> None:
        """Raises if the broker ended, or logged an unhandled exception since the last check."""
        self._fail_if_ended()
        text = self.log_text()
        fresh, self._checked_chars = text[self._checked_chars :], len(text)
        if any(sign in fresh for sign in UNHANDLED_SIGNS):
            raise BrokerDied(f"the broker logged an unhandled exception:\n{fresh[-LOG_TAIL_CHARS:]}")

    def stop(self) -> None:
        """Asks it to end, as ^C does, and insists on a clean exit."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerDied(f"the broker ignored SIGTERM for {STOP_TIMEOUT_S} s\n{self._tail()}") from None
        self._forget()
        if code not in (0, -signal.SIGTERM):
            raise BrokerDied(f"the broker ended with code {code}\n{self._tail()}")

    def kill(self) -> None:
        """Ends it without warning, as a power cut does."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        self._forget()

    def log_text(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def _fail_if_ended(self) -> None:
        assert self._process is not None, "the broker was not started"
        code = self._process.poll()
        if code is not None:
            self._forget()
            raise BrokerDied(f"the broker ended by itself with code {code}\n{self._tail()}")

    def _forget(self) -> None:
        self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _tail(self) -> str:
        return self.log_text()[-LOG_TAIL_CHARS:]
