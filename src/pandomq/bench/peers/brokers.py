"""Brokers started for a comparison: private ones, in directories of their own, ended by their process id.

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
from pandomq.bench.session import Session
from pandomq.bench.url import parse_url
from pandomq.bench.wire import BrokerRefused

RABBITMQ_SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_READY_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0
_RETRY_S = 0.05


class PeerBroker:
    """One broker process, with a directory of its own for each start."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.version = ""
        self.pid = 0
        self.untouched = False
        """Whether it was started and nothing was measured on it since."""
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
        """What to run, and the variables to set in the environment; an empty value takes one out."""
        raise NotImplementedError

    def start(self) -> None:
        self._home = self._directory / secrets.token_hex(4)
        self._home.mkdir(parents=True)
        self._launch()
        process.wait_until_idle(self.pid)
        self.untouched = True

    def restart(self, *, cleanly: bool) -> tuple[float, float, int, str]:
        """With what it has; not cleanly: it is killed. How long its end and its start took, its process, its URL."""
        begun = time.monotonic()
        if not cleanly and self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self.close()
        self._launch()
        return time.monotonic() - begun - self.ready_s, self.ready_s, self.pid, self.url

    def disk_bytes(self) -> int:
        """What its directory takes of the disk."""
        return sum(path.lstat().st_blocks * 512 for path in self._home.rglob("*") if path.exists())

    def _launch(self) -> None:
        self._port = free_port()
        directory = self._home
        command, variables = self.command(directory)
        environment = {name: value for name, value in {**os.environ, **variables}.items() if value}
        begun = time.monotonic()
        with (directory / "output").open("wb") as output:
            # In a session of its own: ^C is for us, and we end it in order.
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
            with contextlib.suppress(OSError, BrokerRefused), Session(parse_url(self.url)) as session:
                self.version = session.server_version
                # A start script may stand between us and the broker, so the one that listens is asked for.
                self.pid = process.listening_pid(self._port) or self._process.pid
                return
            time.sleep(_RETRY_S)
        words = output.read_text(errors="replace")[-2000:]
        self.close()
        raise RuntimeError(f"{self.name} did not start:\n{words}")

    def fresh(self) -> None:
        """Makes sure that it is a broker without a past."""
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
            # The whole group, which is ours alone: a start script that is killed would leave its broker behind.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None


class PandoBroker(PeerBroker):
    def __init__(self, name: str, directory: Path, plain: bool) -> None:
        super().__init__(name, directory)
        self._plain = plain

    def command(self, directory: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        program = str(Path(sys.executable).with_name("pandomq"))
        arguments = ["start", "--listen", f"127.0.0.1:{self._port}", "--http", "off", "--data", str(directory / "data")]
        return [program, *arguments], {"PANDOMQ_PLAIN": "1" if self._plain else ""}


class RabbitBroker(PeerBroker):
    """Debian's RabbitMQ with its defaults; only names, places and ports are ours."""

    def __init__(self, name: str, directory: Path) -> None:
        super().__init__(name, directory)
        self._epmd_port = free_port()

    def command(self, directory: Path) -> tuple[Sequence[str], Mapping[str, str]]:
        plugins = directory / "enabled_plugins"
        plugins.write_text("[].\n")
        return [str(RABBITMQ_SCRIPT)], {
            "HOME": str(directory),
            "RABBITMQ_NODENAME": f"peer{directory.name}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "none.conf"),
            "RABBITMQ_CONFIG_FILE": str(directory / "none"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "none.config"),
            # Erlang's name server would outlive the node, so this node has one of its own.
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def close(self) -> None:
        super().close()
        epmd = process.listening_pid(self._epmd_port)
        if epmd is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(epmd, signal.SIGTERM)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install_rabbitmq() -> None:
    """Debian's package, if it is missing and we may install it."""
    if RABBITMQ_SCRIPT.exists():
        return
    if os.geteuid() != 0:
        raise RuntimeError("RabbitMQ is missing: apt-get install rabbitmq-server (as root), then try again")
    # Run level 1 keeps the package from starting a server of its own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "rabbitmq-server"]
    subprocess.run(install, env=environment, check=True)
