"""The JSON of requests takes a bounded share of memory and of the broker's time, whoever sends it."""

from __future__ import annotations

import json
import struct
import tracemalloc

import pytest

from pandomq import data_form
from pandomq.limits import STAGED_ATTEMPTS_MAX, STAGED_PARTITION_MAX
from pandomq.node.data import limits
from pandomq.node.data.scanner import DataRequest, values_of

from .data_port import HELLO, Connection, DataPort, Fields, encode
from .test_user_bounds import Scene

LISTS = '{"ask":"streams","pattern":[' + "[]," * 300_000 + "[]]}"


def raw(text: str | bytes) -> bytes:
    octets = text.encode() if isinstance(text, str) else text
    return struct.pack("<II", len(octets), 0) + octets


def padded(ask: str, size_bytes: int) -> bytes:
    text = f'{{"ask":"{ask}","query":"w","batch":0,"attempts":[],"pattern":"q","x":"'
    return raw(text + "x" * (size_bytes - len(text) - 2) + '"}')


def refused(connection: Connection) -> str:
    answer = connection.answer()
    assert (answer["error"], connection.closed) == (400, True)
    assert isinstance(answer["text"], str)
    return answer["text"]


@pytest.mark.proves("R38")
def test_a_mebibyte_of_lists_is_refused_from_its_first_bytes() -> None:
    scene = Scene()
    mallory = scene.mallory()
    mallory.say_octets(raw(LISTS)[:100])
    text = refused(mallory)
    assert f"{len(LISTS)} bytes: at most {limits.REQUEST_JSON_BYTES_MAX} are allowed" in text
    assert "commit and drop may have 1048576 if 'ask' comes first" in text
    mallory.lose()
    assert scene.port.node.data.held_bytes == 0


@pytest.mark.parametrize("ask", ["streams", "commit", "drop"])
def test_the_largest_json_of_each_request(ask: str) -> None:
    port = DataPort()
    most = data_form.DATA_JSON_BYTES_MAX if ask in limits.LARGE_REQUESTS else limits.REQUEST_JSON_BYTES_MAX
    connection = port.known()
    connection.say_octets(padded(ask, most))
    assert "error" not in connection.answer()
    connection.say_octets(padded(ask, most + 1))
    assert f"{most + 1} bytes" in refused(connection)


def test_a_large_request_begins_with_its_name() -> None:
    port = DataPort()
    spaced = padded("commit", 2**17).replace(b'{"ask":', b'{ "ask" : ')
    connection = port.known()
    connection.say_octets(struct.pack("<II", len(spaced) - 8, 0) + spaced[8:])
    assert "error" not in connection.answer()
    late = json.dumps({"x": "x" * 2**17, "ask": "commit"})
    connection.say_octets(raw(late))
    assert "if 'ask' comes first" in refused(connection)


def test_the_longest_lists_of_attempts_fit() -> None:
    """The names, partitions and counts are the longest that the handlers take."""
    rows = [[STAGED_PARTITION_MAX - at, f"{at:0>64}", 10**9] for at in range(STAGED_ATTEMPTS_MAX)]
    for ask, width in (("commit", 3), ("drop", 2)):
        port = DataPort()
        fields: Fields = {"ask": ask, "query": "q" * 255, "batch": 2**53, "attempts": [row[:width] for row in rows]}
        assert len(encode(fields)) > 2**19
        answer = port.known().ask(fields)
        assert answer.get("error", 0) == (404 if ask == "commit" else 0)


@pytest.mark.parametrize("prefix", ['{"ask":"streams","pattern":[', '{"ask":"commit","attempts":['])
def test_too_many_values_are_refused_before_they_are_decoded(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = DataPort()
    connection = port.known()
    size_bytes = limits.REQUEST_JSON_BYTES_MAX if "streams" in prefix else data_form.DATA_JSON_BYTES_MAX
    text = prefix + "[]," * ((size_bytes - len(prefix) - 4) // 3) + "0]}"
    with monkeypatch.context() as patch:
        patch.setattr(data_form, "decode_request", lambda octets: pytest.fail("it is decoded"))
        connection.say_octets(raw(text))
    assert "too many values: at most" in refused(connection)


def test_a_password_of_commas_is_no_list() -> None:
    scene = Scene()
    connection = scene.port.connect()
    connection.say({**HELLO, "password": "," * 4096})
    scene.port.pass_ms(10_000)
    assert connection.answer()["error"] == 403


@pytest.mark.parametrize("one", ["[],", "{},", '{"":0},', '[{"":0}],', '{"":{}},', '"ab",', "1.5,", '[0,"a",0],'])
def test_decoded_json_takes_no_more_memory_than_is_reserved(one: str) -> None:
    text = ('{"a":[' + one * 2_000 + "0]}").encode()
    request = DataRequest(text, b"", 0)
    tracemalloc.start()
    try:
        fields = request.decode()
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert fields
    assert taken_bytes < 1.1 * limits.DECODED_BYTES_PER_JSON_BYTE * len(text)
    assert values_of(text) >= 2_000


def test_room_is_reserved_for_the_decoded_json() -> None:
    scene = Scene()
    connections = [scene.mallory() for _ in range(4)]
    for connection in connections:
        connection.say_octets(padded("commit", 2**20)[:200])
    # One user has 64 MiB.
    assert [connection.reading_paused for connection in connections] == [False, False, True, True]
    assert scene.port.node.data.held_bytes == 2 * 32 * 2**20
    guest = scene.port.known()
    assert guest.ask({"ask": "streams", "pattern": ".*"}) == {"streams": []}
    for connection in connections:
        connection.lose()
    assert scene.port.node.data.held_bytes == 0


def test_a_step_decodes_a_bounded_number_of_bytes() -> None:
    port = DataPort()
    connections = [port.known() for _ in range(12)]
    octets = padded("streams", limits.REQUEST_JSON_BYTES_MAX)
    for connection in connections:
        # Several at once: what is sent ahead is not decoded before its turn.
        port.node.data.receive(connection.client, memoryview(octets * 3), port.now_ms)
    rounds = []
    while True:
        before = port.node.data.traffic.requests
        output = port.node.step(port.now_ms)
        rounds.append(port.node.data.traffic.requests - before)
        for effect in output.data:
            port._carry_out(effect)
        if not (output.more or output.data):
            break
    assert max(rounds) * limits.REQUEST_JSON_BYTES_MAX == limits.DECODED_PER_STEP_BYTES_MAX
    assert sum(rounds) == 36
    for connection in connections:
        assert [connection.answer() for _ in range(3)] == [{"streams": []}] * 3


def test_the_answers_to_earlier_requests_precede_the_refusal_of_a_malformed_one() -> None:
    port = DataPort()
    connection = port.known()
    connection.say_octets(encode({"ask": "streams", "pattern": ".*"}) + raw("[]") + encode({"ask": "streams"}))
    assert connection.answer() == {"streams": []}
    assert refused(connection) == "the request is not a JSON object"
    assert connection.octets == b""
