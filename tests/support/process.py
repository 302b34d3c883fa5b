"""Starts a broker in a process of its own, and ends it by its pid.

`start` returns once the broker answers the protocol header. The log goes to a file; a traceback in it is a failure that
a client may not have noticed.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.support import starting
from tests.support.frames import PROTOCOL_HEADER, EndOfStreamError, FrameSocket, dial
from tests.support.ports import free_port

START_PATIENCE_S = 40.0
STOP_PATIENCE_S = 30.0


class BrokerProcess:
    """One `pandomq start` with a data directory and a log of its own."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.port = free_port()
        self.directory = directory
        self.log = directory / "broker.log"
        start = [*starting.COMMAND, "start", "--name", "t"]
        listen = ["--listen", f"127.0.0.1:{self.port}", "--http", "off", "--data", str(directory / "data")]
        self._command = [*start, *listen, *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        environment = dict(os.environ, PYTHONUNBUFFERED="1")
        with self.log.open("ab") as log:
            self._process = starting.start(self._command, log, environment)
        deadline = time.monotonic() + START_PATIENCE_S
        while not self._answers():
            assert self.alive, f"the broker ended at its start:\n{self.log_text()}"
            assert time.monotonic() < deadline, f"the broker does not answer:\n{self.log_text()}"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            probe = FrameSocket(dial("127.0.0.1", self.port))
        except OSError:
            return False
        try:
            probe.send_bytes(PROTOCOL_HEADER)
            probe.read_frame(START_PATIENCE_S)
        except (OSError, EndOfStreamError):
            # The peer was no broker that is ready. If it was ours, its log shows the reason.
            return False
        finally:
            probe.drop()
        return True

    def stop(self) -> int:
        """Asks it to end, kills it if it does not; returns the exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the broker did not end within {STOP_PATIENCE_S} s of SIGTERM") from None

    def kill(self) -> None:
        """Kills the process, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")
