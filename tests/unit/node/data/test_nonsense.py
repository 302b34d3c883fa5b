"""For any input, in any pieces, the data port answers as it should or closes the connection."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import data_form
from pandomq.node.data.handlers import HANDLERS
from tests.support.examples import examples

from .data_port import HELLO, DataPort, encode

SMALL = st.integers(-3, 3) | st.sampled_from([2**31, 2**63, 2**70]) | st.text(max_size=5) | st.none() | st.booleans()
VALUES = st.recursive(SMALL | st.floats(allow_nan=False), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
NAMES = (
    "stream",
    "pattern",
    "first_offset",
    "end_offset",
    "bytes_max",
    "time_us",
    "name",
    "offset",
    "beyond",
    "wait_ms",
)
OTHERS = ("query", "batch", "partition", "attempt", "part", "attempts", "queue", "messages_max", "timeout_ms")
REQUESTS = st.builds(
    lambda ask, fields: {"ask": ask, **fields},
    st.sampled_from(sorted(HANDLERS)) | VALUES,
    st.dictionaries(st.sampled_from(NAMES + OTHERS), VALUES, max_size=6),
)


@given(st.binary(max_size=200), st.booleans())
@settings(max_examples=examples(150))
def test_octets_that_mean_nothing(octets: bytes, known: bool) -> None:
    port = DataPort()
    connection = port.known() if known else port.connect()
    connection.say_octets(octets)
    if connection.octets:
        connection.answer()
        assert connection.octets == b""
    other = port.known()
    assert other.ask({"ask": "streams", "pattern": ".*"}) == {"streams": []}


@given(st.lists(st.tuples(REQUESTS, st.binary(max_size=20)), max_size=5), st.data())
@settings(max_examples=40)
def test_requests_that_mean_nothing_in_any_pieces(
    requests: list[tuple[dict[str, Any], bytes]], data: st.DataObject
) -> None:
    port = DataPort()
    connection = port.connect()
    octets = encode(HELLO) + b"".join(encode(fields, payload) for fields, payload in requests)
    while octets:
        size = data.draw(st.integers(1, len(octets)))
        connection.say_octets(octets[:size])
        octets = octets[size:]
    assert connection.answer()["role"] == "root"
    for _ in requests:
        # A request that waits for a stream finds no stream here: each is answered.
        answer = connection.answer()
        assert isinstance(answer.get("error", 0), int)
    assert connection.octets == b""
    assert not connection.closed


@given(st.dictionaries(st.text(max_size=10), VALUES, max_size=5), st.binary(max_size=100))
def test_a_message_comes_back_as_it_went(fields: dict[str, Any], payload: bytes) -> None:
    octets = data_form.encode_json(fields, len(payload)) + payload
    sizes = data_form.decode_head(octets[: data_form.HEAD.size])
    assert (sizes.total, sizes.payload_bytes) == (len(octets) - data_form.HEAD.size, len(payload))
    found = data_form.decode_json(octets[data_form.HEAD.size : data_form.HEAD.size + sizes.json_bytes])
    assert json.dumps(found) == json.dumps(fields)
