"""Sends hostile batches to one broker after the other, and detects harm to bystanders and brokers.

A batch follows from the seed, the surface and its number alone. After each batch the brokers' logs are checked: with
the log level `error` they stay empty. The batches that were sent last are kept, and shown after a failure.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

import httpx

from tests.fuzz.live import amqp, data_port, http
from tests.fuzz.live.amqp import Login
from tests.support.frames import METHOD, frame
from tests.support.http import NO_TLS
from tests.support.methods import encode

SURFACES: Final = ("amqp", "data", "http")
ADMINISTRATOR: Final = Login("guest", "guest", "/")
BYSTANDER: Final = Login("bystander", "stands by", "/")
MALLORY: Final = Login("mallory", "means harm", "hostile")
RIGHTS_BESIDE_BYSTANDERS: Final = {"configure": "^hostile", "write": "^hostile", "read": r"^(hostile|bystander\.s)"}
REFRESH_EVERY: Final = 25
"""The number of batches after which the hostile vhost is made again, which deletes the objects in it."""
LOOK_EVERY: Final = 20
KEPT: Final = 12
PATIENCE_S: Final = 15.0
QUIET_S: Final = {"amqp": 0.2, "data": 0.2, "http": 3.0}
"""A broker that has written nothing for this time waits for the rest of a request."""
SIGNS: Final = (
    "Traceback (most recent call last)",
    "unexpected exception",
    "was never retrieved",
    "Fatal Python error",
)
CLOSE: Final = frame(METHOD, 0, encode("connection.close", reply_code=200))
CLOSED: Final = (frame(METHOD, 0, encode("connection.close-ok")), b"\0\x0a\0\x32")
OPEN_OK: Final = frame(METHOD, 0, encode("connection.open-ok"))
INTERNAL_ERRORS: Final = {"amqp": (b"INTERNAL_ERROR",), "data": (b'"error":541',), "http": (b"HTTP/1.1 500",)}


class Harmed(AssertionError):
    """A bystander or a broker was harmed, and these batches were sent last."""

    def __init__(self, reason: str, sent: list[tuple[str, int, bytes]]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


@dataclass(frozen=True)
class Target:
    """The broker that the hostile client attacks."""

    name: str
    host: str
    amqp_port: int
    data_port: int
    """The data port; 0 if it has none, like a secondary."""
    http_port: int


@dataclass
class Counted:
    """The number of sent inputs, and of those that the brokers have handled."""

    batches: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    handled: Counter[str] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0

    @property
    def inputs(self) -> int:
        return self.handled.total()


class LogWatch:
    """Reads the new parts of logs."""

    def __init__(self, paths: list[Path]) -> None:
        self._places = dict.fromkeys(paths, 0)

    def look(self) -> str | None:
        """Returns the new part of a log if it contains an exception."""
        for path, place in self._places.items():
            size = path.stat().st_size if path.exists() else 0
            if size > place:
                with path.open("rb") as log:
                    log.seek(place)
                    fresh = log.read().decode(errors="replace")
                self._places[path] = size
                if any(sign in fresh for sign in SIGNS):
                    return f"{path}:\n{fresh[-6000:]}"
        return None


class Attack:
    def __init__(self, seed: int, targets: list[Target], logs: LogWatch, harm: Callable[[], str | None]) -> None:
        """`harm` returns the harm to a bystander or a broker, if there is any."""
        self._seed = seed
        self._targets = targets
        self._logs = logs
        self._harm = harm
        self._sent: deque[tuple[str, int, bytes]] = deque(maxlen=KEPT)
        self._numbers: Counter[str] = Counter()
        self.counted = Counted()

    def run(self, wanted: dict[str, int], on_progress: Callable[[int], None] = lambda _: None) -> Counted:
        """Runs until so many inputs of each surface were handled. Raises Harmed."""
        while any(self.counted.handled[surface] < count for surface, count in wanted.items()):
            number = self.counted.batches.total()
            if number % REFRESH_EVERY == 0:
                self.refresh()
            # The surface with the least progress comes next.
            surface = min(wanted, key=lambda one: self.counted.handled[one] / max(1, wanted[one]))
            self.send(surface, self._numbers[surface])
            self._numbers[surface] += 1
            self._look(thoroughly=number % LOOK_EVERY == 0)
            on_progress(self.counted.inputs)
        self._look(thoroughly=True)
        return self.counted

    def refresh(self) -> None:
        """Makes the hostile vhost again, empty, with its users and permissions."""
        for method, path, body in (
            ("DELETE", "vhosts/hostile", None),
            ("PUT", "vhosts/hostile", {}),
            ("PUT", "permissions/hostile/mallory", {"configure": ".*", "write": ".*", "read": ".*"}),
            ("PUT", "permissions/hostile/guest", {"configure": ".*", "write": ".*", "read": ".*"}),
            ("PUT", "permissions/%2F/mallory", RIGHTS_BESIDE_BYSTANDERS),
        ):
            administer(self._targets[0], method, path, body)

    def send(self, surface: str, number: int) -> None:
        """Sends one batch. Raises Harmed."""
        random = Random(f"{self._seed}/{surface}/{number}")
        target = random.choice([one for one in self._targets if surface != "data" or one.data_port])
        login = MALLORY if random.random() < 0.8 else MALLORY._replace(vhost="/")
        first = 0
        match surface:
            case "amqp":
                made = amqp.batch(random, login)
                first = made.first
                data, inputs, port = made.data + CLOSE, made.inputs, target.amqp_port
                patience_s = PATIENCE_S if made.waits else 0.0
            case "data":
                requests = data_port.batch(random, login)
                data, inputs, port, patience_s = requests.data, requests.inputs, target.data_port, PATIENCE_S
                first = requests.first
            case _:
                asked = http.batch(random, ADMINISTRATOR, MALLORY)
                data, inputs, port, patience_s = asked.data, asked.inputs, target.http_port, PATIENCE_S
        self._sent.append((f"{surface} to {target.name}", number, data))
        written = _exchange((target.host, port), data, patience_s, surface, inputs, first)
        counted = self.counted
        counted.batches[surface] += 1
        counted.sent[surface] += inputs
        counted.handled[surface] += min(inputs, _handled(surface, written)) if patience_s else inputs
        counted.bytes_in += len(data)
        counted.bytes_out += len(written)
        if any(sign in written for sign in INTERNAL_ERRORS[surface]):
            place = min(written.index(sign) for sign in INTERNAL_ERRORS[surface] if sign in written)
            self._fail(f"the broker answered with an internal error: {written[max(0, place - 300) : place + 300]!r}")

    def _look(self, *, thoroughly: bool) -> None:
        logged = self._logs.look()
        if logged is not None:
            self._fail(f"a broker logged an exception: {logged}")
        reason = self._harm() if thoroughly else None
        if reason is not None:
            self._fail(reason)

    @property
    def last_batches(self) -> list[tuple[str, int, bytes]]:
        return list(self._sent)

    def _fail(self, reason: str) -> None:
        raise Harmed(reason, self.last_batches)


def administer(target: Target, method: str, path: str, body: object = None) -> None:
    """Repeats the request until it is done: a recently imported definition may prevent it."""
    url = f"http://{target.host}:{target.http_port}/api/{path}"
    headers = {"content-type": "application/json"} if body is not None else {}
    content = None if body is None else json.dumps(body)
    for _ in range(20):
        answer = httpx.request(
            method, url, content=content, headers=headers, auth=ADMINISTRATOR[:2], timeout=PATIENCE_S, verify=NO_TLS
        )
        if answer.status_code < 400 or (answer.status_code == 404 and method == "DELETE"):
            return
        time.sleep(0.1)
    raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")


def _handled(surface: str, written: bytes) -> int:
    if surface == "amqp":
        return amqp.handled(written)[0]
    return data_port.answers(written) if surface == "data" else written.count(b"HTTP/1.1 ")


def _exchange(
    place: tuple[str, int], data: bytes, patience_s: float, surface: str, inputs: int, first: int = 0
) -> bytes:
    """Sends everything while it reads the answers, until the broker has handled it or waits for more. `first` bytes
    open a connection, and the rest follows when it is open."""
    written = bytearray()
    whole = memoryview(data)
    rest, waiting = (whole[:first], whole[first:]) if first else (whole, whole[:0])
    deadline = time.monotonic() + PATIENCE_S
    with socket.create_connection(place, PATIENCE_S) as connected:
        connected.setblocking(False)
        while time.monotonic() < deadline:
            readable, writable, _ = select.select(
                [connected], [connected] if rest else [], [], QUIET_S[surface] if patience_s or rest else 0
            )
            try:
                if writable:
                    rest = rest[connected.send(rest) :]
                if readable:
                    piece = connected.recv(1 << 18)
                    if not piece:
                        break
                    written += piece
                    if waiting and (surface == "data" or OPEN_OK in written or CLOSED[1] in written):
                        rest, waiting = waiting, waiting[:0]
            except (ConnectionError, BlockingIOError):
                break
            if not (readable or writable) or not (rest or waiting or patience_s):
                break
            if not (rest or waiting) and readable and _is_over(surface, written, inputs):
                break
    return bytes(written)


def _is_over(surface: str, written: bytearray, inputs: int) -> bool:
    if surface == "amqp":
        return written.endswith(CLOSED[0]) or CLOSED[1] in written[-400:]
    # The hello has an answer, too.
    return surface == "data" and data_port.answers(bytes(written)) > inputs
