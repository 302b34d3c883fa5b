"""Hostile requests to the data port: every request with every field, valid and not, by users with and without
permissions."""

from __future__ import annotations

import json
import re
import struct
from random import Random
from typing import Any, Final, NamedTuple

from pandomq.data_form import DATA_JSON_BYTES_MAX, DATA_PAYLOAD_BYTES_MAX
from pandomq.node.data.handlers import HANDLERS
from pandomq.node.data.limits import REQUEST_JSON_BYTES_MAX
from tests.fuzz.live.amqp import Login, some_content, some_method
from tests.fuzz.live.values import encoded_json, some_json
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER, METHOD, frame
from tests.support.methods import encode

PLAIN: Final[dict[str, Any]] = {
    "stream": "hostile.s0",
    "pattern": ".*",
    "first_offset": 0,
    "end_offset": 5,
    "bytes_max": 100,
    "time_us": 0,
    "beyond": 0,
    "wait_ms": 0,
    "name": "n",
    "offset": 1,
    "query": "w",
    "batch": 0,
    "partition": 0,
    "attempt": "a",
    "part": 0,
    "attempts": [[0, "a", 1]],
    "queue": "hostile.q0",
    "messages_max": 1,
    "timeout_ms": 1000,
}
"""Every field of every request, with a valid value."""
REQUESTS_MAX: Final = 100
LONE_SURROGATE: Final = re.compile(r"\\ud800|(?<=a)\\udfff")
"""The surrogates of `values`: a request with one ends the connection."""


class DataBatch(NamedTuple):
    data: bytes
    inputs: int
    first: int = 0
    """The number of octets of the hello; before its answer the broker reads little."""


def message(fields: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<II", len(fields), len(payload)) + fields + payload


def hello(login: Login) -> bytes:
    text = f'{{"ask":"hello","version":1,"user":"{login.user}","password":"{login.password}","vhost":"{login.vhost}"}}'
    return message(text.encode())


def batch(random: Random, login: Login) -> DataBatch:
    if random.random() < 0.05:
        return DataBatch(_hello(random, login), 1)
    count = random.randint(REQUESTS_MAX // 2, REQUESTS_MAX)
    requests = [_request(random) for _ in range(count)]
    if random.random() < 0.5:
        requests.append(_broken(random, requests[-1]))
    begin = hello(login)
    return DataBatch(begin + b"".join(requests), len(requests), len(begin))


def _hello(random: Random, login: Login) -> bytes:
    fields = {"ask": "hello", "version": 1, "user": login.user, "password": login.password, "vhost": login.vhost}
    # A wrong password keeps a thread busy; the other fields cost nothing.
    for name in random.sample(["ask", "version", "vhost", "user"], random.randint(1, 2)):
        fields[name] = some_json(random)
    return message(encoded_json(random, fields)) + _request(random)


def _request(random: Random) -> bytes:
    ask: Any = random.choice(sorted(HANDLERS))
    fields = {**PLAIN, "ask": ask}
    for name in random.choices(
        [*PLAIN, "ask", "unknown"], weights=[*(1 for _ in PLAIN), 0.3, 0.3], k=random.choice([0, 1, 1, 2, 4])
    ):
        fields[name] = some_json(random)
        if name == "attempts" and random.random() < 0.7:
            fields[name] = [
                [some_json(random, 0) for _ in range(random.choice([2, 3, 3, 4]))] for _ in range(random.choice([1, 2]))
            ]
    if ask == "range" and random.random() < 0.95:
        # A broker that waits for the stream to grow delays the later requests on the connection.
        fields["wait_ms"] = random.choice([0, 1, -1, "1"])
    for name in random.sample(sorted(PLAIN), random.choice([0, 0, 1, 3])):
        fields.pop(name, None)
    payload = b""
    if ask == "stage" and random.random() < 0.8:
        payload = _frames(random)
    elif random.random() < 0.1:
        payload = random.randbytes(random.choice([1, 100, 5_000]))
    # JSON that cannot be read ends the connection and hides the requests behind it, so it comes last, see `_broken`.
    text = LONE_SURROGATE.sub("\\\\u00e9", json.dumps(fields))
    return message(text.encode("ascii"), payload)


def _frames(random: Random) -> bytes:
    body = random.choice([b"", b"m", b"x" * 300])
    method = frame(
        METHOD,
        1,
        encode("basic.publish", exchange=random.choice(["", "hostile.x0", "missing"]), routing_key="hostile.q0"),
    )
    whole = method + frame(HEADER, 1, content_header(len(body), {})) + (frame(BODY, 1, body) if body else b"")
    chance = random.random()
    if chance < 0.4:
        return whole
    if chance < 0.8:
        return b"".join([some_method(random, "basic.publish", 1), *some_content(random, 1)])
    return whole[: random.randrange(len(whole))] if chance < 0.9 else random.randbytes(random.choice([1, 8, 300]))


def _broken(random: Random, request: bytes) -> bytes:
    """Draws the last request of a connection: one that cannot be read, or that never ends."""
    sizes = (
        0,
        1,
        2,
        REQUEST_JSON_BYTES_MAX,
        REQUEST_JSON_BYTES_MAX + 1,
        DATA_JSON_BYTES_MAX,
        DATA_JSON_BYTES_MAX + 1,
        DATA_PAYLOAD_BYTES_MAX,
        DATA_PAYLOAD_BYTES_MAX + 1,
        2**31,
        2**32 - 1,
    )
    chance = random.random()
    if chance < 0.4:
        return struct.pack("<II", random.choice(sizes), random.choice(sizes)) + request[8:]
    if chance < 0.6:
        return request[: random.randrange(len(request))]
    if chance < 0.8:
        return message(encoded_json(random, some_json(random)))
    return random.randbytes(random.choice([1, 7, 8, 100]))


def answers(written: bytes) -> int:
    """Returns the number of these answers."""
    place = count = 0
    while len(written) - place >= 8:
        json_bytes, payload_bytes = struct.unpack_from("<II", written, place)
        place += 8 + json_bytes + payload_bytes
        count += 1
    return count
