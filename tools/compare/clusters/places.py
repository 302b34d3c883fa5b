"""The places where the brokers of a cluster run: on loopback, or each in a network namespace of its own, joined by a
bridge.

Only namespaces can be cut off, and the bytes to one broker can be counted only there; they need root privileges.
"""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pandomq.bench import process
from pandomq.bench.broker_process import free_port
from tools.compare.clusters import limits


class Place:
    """On loopback, with ports of its own."""

    can_be_cut = False

    def __init__(self, epmd_port: int = 0) -> None:
        self.host = "127.0.0.1"
        self.amqp_port = free_port()
        self.http_port = free_port()
        self.dist_port = free_port()
        self.epmd_port = epmd_port or free_port()
        self.prefix: list[str] = []
        """A prefix for commands that run here."""
        self.is_cut = False

    @property
    def amqp(self) -> str:
        return f"{self.host}:{self.amqp_port}"

    @property
    def http(self) -> str:
        return f"{self.host}:{self.http_port}"

    def cut(self) -> None:
        raise NotImplementedError("a place on loopback cannot be cut off")

    def heal(self) -> None:
        """Connects it again."""

    def received_bytes(self) -> int:
        """All bytes that were sent to this place so far."""
        raise NotImplementedError("bytes on loopback are not counted by receiver")

    def clear(self) -> None:
        """Ends processes that brokers leave behind here: Erlang's name server."""
        pid = process.listening_pid(self.epmd_port)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


class Namespace(Place):
    can_be_cut = True

    def __init__(self, name: str, bridge: str, host: str) -> None:
        """Both exist already."""
        self.host = host
        self.amqp_port, self.http_port, self.dist_port, self.epmd_port = 5672, 15672, 25672, 4369
        self.prefix = ["ip", "netns", "exec", name]
        self._name = name
        self._bridge = bridge
        self._outside = f"{name}o"
        self.is_cut = False

    def build(self, gateway: str) -> None:
        _ip("netns", "add", self._name)
        _ip("link", "add", self._outside, "type", "veth", "peer", "name", "eth0", "netns", self._name)
        _ip("link", "set", self._outside, "master", self._bridge, "up")
        _ip("-n", self._name, "address", "add", f"{self.host}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", self._name, "link", "set", device, "up")
        _ip("-n", self._name, "route", "add", "default", "via", gateway)

    def cut(self) -> None:
        # The broker's interface stays up, as it does when a cable is pulled behind the next switch: only missing
        # traffic shows the fault.
        _ip("link", "set", self._outside, "nomaster")
        self.is_cut = True

    def heal(self) -> None:
        if self.is_cut:
            _ip("link", "set", self._outside, "master", self._bridge)
            self.is_cut = False

    def received_bytes(self) -> int:
        return int(Path(f"/sys/class/net/{self._outside}/statistics/tx_bytes").read_text())

    def clear(self) -> None:
        for pid in _ip("netns", "pids", self._name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def namespaces_allowed() -> bool:
    return os.geteuid() == 0 and shutil.which("ip") is not None


@contextmanager
def places(count: int, *, apart: bool) -> Iterator[list[Place]]:
    """`count` places; `apart`: in namespaces. Processes left there are ended at the end."""
    if apart:
        with _namespaces(count) as found:
            yield found
        return
    # One name server for all of them, as on any machine with several Erlang nodes.
    epmd_port = free_port()
    near = [Place(epmd_port) for _ in range(count)]
    try:
        yield near
    finally:
        near[0].clear()


@contextmanager
def _namespaces(count: int) -> Iterator[list[Place]]:
    token = secrets.token_hex(3)
    bridge = f"pb{token}"
    # 198.18.0.0/15 is reserved for measurements like this one, so no real network uses it.
    net = f"198.{secrets.choice((18, 19))}.{secrets.randbelow(256)}"
    built = [Namespace(f"pb{token}n{number}", bridge, f"{net}.{10 + number}") for number in range(1, count + 1)]
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{net}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for place in built:
            place.build(f"{net}.1")
        yield list(built)
    finally:
        for place in built:
            with suppress(RuntimeError):
                place.clear()
                _ip("netns", "delete", place.prefix[-1])
        with suppress(RuntimeError):
            _ip("link", "delete", bridge)


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=limits.COMMAND_TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
