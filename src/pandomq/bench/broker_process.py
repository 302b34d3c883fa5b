"""A broker that a benchmark starts for itself: in a directory of its own, ended by its process id.

Nothing here touches a broker that runs on the machine already.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pandomq.bench import process
from pandomq.bench.client.session import LoadSession
from pandomq.bench.client.url import parse_url
from pandomq.bench.client.wire import BrokerRefused

_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_RETRY_S = 0.05


class BrokerProcess:
    """One broker process, with a directory of its own for each start."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.version = ""
        self.pid = 0
        self.untouched = False
        """Whether it was started and nothing was measured on it since then."""
        self.ready_s = 0.0
        """From its last start until it answered."""
        self._directory = directory
        self._home = directory
        """Of the last start."""
        self._process: subprocess.Popen[bytes] | None = None
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self._port}/"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def command(self, directory: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command, and the variables to set in the environment; an empty value removes one."""
        raise NotImplementedError

    def start(self) -> None:
        self._home = self._directory / secrets.token_hex(4)
        self._home.mkdir(parents=True)
        self._launch()
        process.wait_until_idle(self.pid)
        self.untouched = True

    def restart(self, *, cleanly: bool) -> tuple[float, float, int, str]:
        """With its data; not cleanly: it is killed. Returns how long its end and its start took, its process, its
        URL."""
        begun = time.monotonic()
        if not cleanly and self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.close()
        self._launch()
        return time.monotonic() - begun - self.ready_s, self.ready_s, self.pid, self.url

    def disk_bytes(self) -> int:
        """Disk space of its directory."""
        return sum(path.lstat().st_blocks * 512 for path in self._home.rglob("*") if path.exists())

    def _launch(self) -> None:
        self._port = free_port()
        directory = self._home
        command, variables = self.command(directory)
        environment = {name: value for name, value in {**os.environ, **variables}.items() if value}
        begun = time.monotonic()
        with (directory / "output").open("wb") as output:
            # In a session of its own: ^C reaches only this process, which ends it in order.
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait_until_ready(directory / "output")
        self.ready_s = time.monotonic() - begun

    def _wait_until_ready(self, output: Path) -> None:
        end = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                break
            with contextlib.suppress(OSError, BrokerRefused), LoadSession(parse_url(self.url)) as session:
                self.version = session.server_version
                # There may be a start script between this process and the broker, so the listening process is used.
                self.pid = process.listening_pid(self._port) or self._process.pid
                return
            time.sleep(_RETRY_S)
        words = output.read_text(errors="replace")[-2000:]
        self.close()
        raise RuntimeError(f"{self.name} did not start:\n{words}")

    def fresh(self) -> None:
        """Ensures that the broker has no earlier data."""
        if self.untouched and self.alive:
            return
        self.close()
        self.start()

    def close(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # The whole group, which contains nothing else: a killed start script would leave its broker behind.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None


class PandoBroker(BrokerProcess):
    def __init__(self, name: str, directory: Path, plain: bool) -> None:
        super().__init__(name, directory)
        self._plain = plain

    def command(self, directory: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        program = str(Path(sys.executable).with_name("pandomq"))
        arguments = ["start", "--listen", f"127.0.0.1:{self._port}", "--http", "off", "--data", str(directory / "data")]
        return [program, *arguments], {"PANDOMQ_PLAIN": "1" if self._plain else ""}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
