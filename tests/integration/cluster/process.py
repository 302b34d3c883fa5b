"""One broker of a cluster: a `pandomq start` with its own configuration, data and log, which may end and start
again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pika

import pandomq
from tests.integration.configured_broker import toml
from tests.integration.waiting import wait_until
from tests.integration.watched_broker import UNHANDLED_SIGNS
from tests.support import starting
from tests.support.http import NO_TLS

USER, PASSWORD = "proof", "of the pudding"
START_PATIENCE_S = 60.0
STOP_PATIENCE_S = 30.0
ASK_PATIENCE_S = 3.0
LOG_TAIL_CHARS = 6000
SOURCES = Path(pandomq.__file__).parents[1]
"""The tests start the sources that they import."""
READY = re.compile(r"ready on ")


class ClusterBroker:
    def __init__(
        self, name: str, directory: Path, host: str, port: int, http_port: int, prefix: list[str] | None = None
    ) -> None:
        """`prefix` are words before the command, for example to run it in a namespace."""
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.directory = directory
        self.data = directory / "data"
        self.host, self.port, self.http_port = host, port, http_port
        self.sections: dict[str, dict[str, object]] = {}
        self._prefix = prefix or []
        self._process: subprocess.Popen[bytes] | None = None
        self._log = directory / "log"
        self._frozen = False
        self.unreachable = False
        """The tests know that it cannot be reached."""

    def configure(self, sections: Mapping[str, Mapping[str, object]]) -> None:
        """Adds to its configuration at its next start."""
        for section, keys in sections.items():
            self.sections.setdefault(section, {}).update(keys)

    # Start and stop.

    def launch(self, *options: str) -> None:
        """Starts it without waiting."""
        assert not self.alive
        own: dict[str, object] = {"name": self.name, "data": str(self.data), "log_level": "info"}
        own |= {"listen": f"{self.host}:{self.port}", "http": f"{self.host}:{self.http_port}"}
        auth: dict[str, object] = {"default_user": USER, "default_password": PASSWORD, **self.sections.get("auth", {})}
        sections: dict[str, Mapping[str, object]] = {
            **self.sections,
            "node": own | self.sections.get("node", {}),
            "auth": auth,
        }
        config = self.directory / "pandomq.toml"
        config.write_text(toml(sections))
        config.chmod(0o600)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PANDOMQ_")}
        kept = {name: os.environ[name] for name in ("PANDOMQ_PLAIN",) if name in os.environ}
        with self._log.open("ab") as log:
            environment = {**clean, **kept, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(SOURCES)}
            command = [*self._prefix, *starting.COMMAND, "start", "--config", str(config), *options]
            self._process = starting.start(command, log, environment, self.directory)

    def start(self, *options: str) -> None:
        """Returns once it listens."""
        mark = self.mark()
        self.launch(*options)
        self.wait_for_line(READY.pattern, mark)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kills the process, as a crash would."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._frozen = False

    def terminate(self) -> None:
        """Asks it to end, and does not wait."""
        assert self._process is not None
        self._process.terminate()

    def stop(self) -> None:
        """Asks it to end, and requires a clean exit."""
        self.terminate()
        code = self.wait_for_end()
        assert code == 0, f"{self.name} ended with {code}:\n{self.tail}"

    def wait_for_end(self) -> int:
        assert self._process is not None
        try:
            return self._process.wait(STOP_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {STOP_PATIENCE_S} s:\n{self.tail}") from None

    def freeze(self) -> None:
        """Suspends it, like a suspended machine: its sockets stay open, and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._frozen = False

    def end(self) -> None:
        """Ends it in any state."""
        if self.alive:
            self.kill()

    # Its log.

    @property
    def words(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def tail(self) -> str:
        return self.words[-LOG_TAIL_CHARS:]

    def mark(self) -> int:
        """Returns the end of the log, for reading only later lines."""
        return self._log.stat().st_size if self._log.exists() else 0

    def lines(self, pattern: str, mark: int = 0) -> list[str]:
        if not self._log.exists():
            return []
        fresh = self._log.read_bytes()[mark:].decode(errors="replace")
        return [line for line in fresh.splitlines() if re.search(pattern, line)]

    def wait_for_line(self, pattern: str, mark: int = 0) -> str:
        def found() -> list[str]:
            assert self.alive, f"{self.name} ended:\n{self.tail}"
            return self.lines(pattern, mark)

        try:
            wait_until(found, f"a line like {pattern!r} in the log of {self.name}", START_PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.tail}") from None
        return self.lines(pattern, mark)[0]

    def check(self, mark: int = 0) -> None:
        """Checks that there was no unhandled exception."""
        fresh = self._log.read_bytes()[mark:].decode(errors="replace") if self._log.exists() else ""
        for sign in UNHANDLED_SIGNS:
            assert sign not in fresh, f"in the log of {self.name}:\n{fresh[-LOG_TAIL_CHARS:]}"

    # Requests.

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def http_url(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    @property
    def login(self) -> tuple[str, str]:
        own = self.sections.get("auth", {})
        return str(own.get("default_user", USER)), str(own.get("default_password", PASSWORD))

    @property
    def url(self) -> str:
        user, password = self.login
        return f"amqp://{user}:{password.replace(' ', '%20')}@{self.address}/%2F"

    def parameters(self, **more: Any) -> pika.ConnectionParameters:
        credentials = pika.PlainCredentials(*self.login)
        return pika.ConnectionParameters(self.host, self.port, credentials=credentials, **more)

    def ask(self, path: str, method: str = "GET", body: object = None) -> httpx.Response | None:
        """Sends a request to its HTTP API; returns None if it does not answer."""
        try:
            return httpx.request(
                method,
                f"{self.http_url}/api/{path}",
                auth=self.login,
                json=body,
                timeout=ASK_PATIENCE_S,
                verify=NO_TLS,
            )
        except httpx.TransportError:
            return None

    @property
    def serves(self) -> bool:
        """Whether it is root, and reports that it accepts clients."""
        if not self.alive or self._frozen or self.unreachable:
            return False
        answer = self.ask("health/root")
        return answer is not None and answer.status_code == 200

    @property
    def status(self) -> dict[str, Any]:
        """Its view of the cluster; empty if it does not answer."""
        if not self.alive or self._frozen or self.unreachable:
            return {}
        answer = self.ask("cluster")
        return answer.json() if answer is not None and answer.status_code == 200 else {}
