"""Every field of every request, with values at and beyond its bounds: refused in words, and nothing else happens."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pandomq.node.data.handlers import HANDLERS

from .data_port import HELLO, Connection, encode
from .test_streams import Scene

Fields = dict[str, Any]

LONE_SURROGATES: Final = ("\ud800", "a\udfff", "\udc80", "\ude00\ud83d")
VALUES: Final[tuple[Any, ...]] = (
    *(sign * number for number in (0, 1, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**400) for sign in (1, -1)),
    1.5,
    float("nan"),
    float("inf"),
    True,
    None,
    "",
    "\0",
    "s" * 60_000,
    "\U0001f600",
    [],
    [[]],
    [[0, "a", 2**70]],
    [[2**63 - 1, "a", 2**63 - 1]],
    {"": {}},
)
PLAIN: Final[Fields] = {
    "stream": "s",
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
    "attempts": [],
    "queue": "q",
    "messages_max": 1,
    "timeout_ms": 5000,
}


@pytest.mark.parametrize("ask", sorted(HANDLERS))
def test_every_field_with_values_at_and_beyond_its_bounds(ask: str) -> None:
    scene = Scene()
    scene.publish(4, body=b"x")
    for name in PLAIN:
        for value in VALUES:
            answer = scene.connection.ask({**PLAIN, "ask": ask, name: value})
            assert 400 <= answer.get("error", 400) < 600, (ask, name, value, answer)
    assert scene.ask("range")["end_offset"] == 4


@pytest.mark.parametrize("text", LONE_SURROGATES)
@pytest.mark.parametrize("place", ["query", "name", "queue", "nobody asked for", "attempts", "key"])
def test_a_lone_surrogate_is_refused_where_requests_are_decoded(text: str, place: str) -> None:
    scene = Scene()
    broker = scene.port.node.broker
    vhost = broker.state.vhosts["/"]
    for ask in sorted(HANDLERS):
        fields = {**PLAIN, "ask": ask}
        if place == "key":
            fields[text] = 1
        else:
            fields[place] = [[0, text, 0]] if place == "attempts" else text
        connection = scene.port.known()
        answer = connection.ask(fields)
        assert answer["error"] == 400
        assert "surrogate" in answer["text"]
        assert connection.closed
    assert not len(broker.state.staged)
    assert vhost.inner_queues == {}


def test_a_lone_surrogate_in_a_hello_is_refused() -> None:
    for name in ("user", "password", "vhost"):
        connection = Scene().port.connect()
        connection.say_octets(encode({**HELLO, name: "\ud800"}))
        assert connection.answer()["error"] == 400


def test_pairs_of_surrogates_are_characters() -> None:
    connection: Connection = Scene().connection
    assert connection.ask({"ask": "last_batch", "query": "\U0001f600"}) == {"batch": -1}
