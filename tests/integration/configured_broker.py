"""A broker of one test, with its own configuration, and queries of its addresses, its log and its size.

It listens on free ports, which are read from its log. The log is read line by line, from a mark on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pika
import psutil

from tests.support import starting
from tests.support.client import Address, Connection
from tests.support.http import NO_TLS

from .waiting import PATIENCE_S, wait_until
from .watched_broker import UNHANDLED_SIGNS

READY = re.compile(r"ready on (.*) \(kernel")
PLACE = re.compile(r"(\w+)://127\.0\.0\.1:(\d+)")


def toml(sections: Mapping[str, Mapping[str, object]]) -> str:
    """Texts, numbers, flags and paths, all of which TOML writes as JSON does."""
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value, default=str)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"


def quick_hash(password: str) -> dict[str, str]:
    """A password hash in RabbitMQ's export format: one digest, while our own takes some fifty milliseconds."""
    salt = b"salt"
    digest = hashlib.sha256(salt + password.encode()).digest()
    return {
        "password_hash": base64.b64encode(salt + digest).decode(),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
    }


class ConfiguredBroker:
    def __init__(self, directory: Path, **sections: Mapping[str, object]) -> None:
        """A section's name has `_` for its dot: node_tls."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.log = directory / "log"
        self._file = directory / "pandomq.toml"
        self._sections = {name.replace("_", ".", 1): dict(keys) for name, keys in sections.items()}
        self._sections.setdefault("node", {})
        self._sections["node"] = {
            "listen": "127.0.0.1:0",
            "http": "off",
            "log_level": "debug",
            **self._sections["node"],
        }
        self._file.write_text(toml(self._sections))
        self._ports: dict[str, int] = {}

    # Start and stop.

    def start(self, files_max: int | None = None) -> None:
        """Returns once it listens. `files_max` limits its open files below the limit of the system."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PANDOMQ_")}
        kept = {name: os.environ[name] for name in ("PANDOMQ_PLAIN",) if name in os.environ}
        limited = ["prlimit", f"--nofile={files_max}"] if files_max else []
        command = [*limited, *starting.COMMAND, "start", "--config", str(self._file)]
        with self.log.open("wb") as log:
            self.process = starting.start(command, log, {**clean, **kept}, self.directory)
        ready = READY.search(self.wait_for_line(READY.pattern))
        assert ready is not None
        self._ports = {scheme: int(port) for scheme, port in PLACE.findall(ready[1])}

    def stop(self) -> None:
        """Asks it to end, and requires a clean exit and a log without a traceback."""
        self.process.terminate()
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        assert code == 0, f"it ended with {code}:\n{self.words}"
        self.check()

    def check(self) -> None:
        for sign in UNHANDLED_SIGNS:
            assert sign not in self.words, self.words

    def change(self, **sections: Mapping[str, object]) -> None:
        """Writes other values into its configuration, which it reads on SIGHUP."""
        for name, keys in sections.items():
            self._sections.setdefault(name.replace("_", ".", 1), {}).update(keys)
        self._file.write_text(toml(self._sections))

    def remove(self, section: str, key: str) -> None:
        """Takes a key out of its configuration."""
        del self._sections[section][key]
        self._file.write_text(toml(self._sections))

    def hang_up(self) -> str:
        """Sends SIGHUP; returns the line of the log that answers it."""
        mark = self.mark()
        self.process.send_signal(signal.SIGHUP)
        return self.wait_for_line("certificates and settings were reloaded|remain as they were", mark)

    # Addresses.

    @property
    def port(self) -> int:
        return self._ports["amqp"]

    @property
    def tls_port(self) -> int:
        return self._ports["amqps"]

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self._ports['http']}"

    def address(self, user: str = "guest", password: str = "guest", vhost: str = "/") -> Address:
        return Address("127.0.0.1", self.port, user, password, vhost)

    def connect(self, user: str = "guest", password: str = "guest", **parameters: Any) -> pika.BlockingConnection:
        given = {"host": "127.0.0.1", "port": self.port, "heartbeat": 0, **parameters}
        return pika.BlockingConnection(
            pika.ConnectionParameters(credentials=pika.PlainCredentials(user, password), **given)
        )

    def open(self, user: str = "guest", password: str = "guest", vhost: str = "/", **tune: Any) -> Connection:
        """Opens a connection of the tests' own client, which shows each method."""
        return Connection.opened(self.address(user, password, vhost), **tune)

    # Requests over HTTP.

    def api(self, user: str = "guest", password: str = "guest") -> httpx.Client:
        """Its paths are relative to /api/."""
        return httpx.Client(base_url=f"{self.http_url}/api/", auth=(user, password), timeout=PATIENCE_S, verify=NO_TLS)

    def define(self, **definitions: list[dict[str, Any]]) -> None:
        """Defines users, vhosts, permissions and similar objects in one request."""
        with self.api() as api:
            answer = api.post("definitions", json=definitions)
            assert answer.status_code == 204, answer.text

    # Its log, and its state.

    @property
    def words(self) -> str:
        return self.log.read_text(errors="replace")

    def mark(self) -> int:
        """Returns the end of the log, for reading only later lines."""
        return len(self.log.read_bytes())

    def lines(self, pattern: str, mark: int = 0) -> list[str]:
        fresh = self.log.read_bytes()[mark:].decode(errors="replace")
        return [line for line in fresh.splitlines() if re.search(pattern, line)]

    def wait_for_line(self, pattern: str, mark: int = 0) -> str:
        def found() -> list[str]:
            assert self.process.poll() is None, f"it ended:\n{self.words}"
            return self.lines(pattern, mark)

        wait_until(found, f"a line like {pattern!r} in the log")
        return self.lines(pattern, mark)[0]

    @property
    def resident_bytes(self) -> int:
        size: int = psutil.Process(self.process.pid).memory_info().rss
        return size


@contextmanager
def running(broker: ConfiguredBroker, files_max: int | None = None) -> Iterator[ConfiguredBroker]:
    """For fixtures; a failed test does not leave it running."""
    broker.start(files_max)
    try:
        yield broker
        broker.stop()
    finally:
        if broker.process.poll() is None:
            broker.process.kill()
            broker.process.wait()
