"""Streams through the data port of a node in memory: what is told of them, and their chunks."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import chunk_form
from pandomq.broker.log.commands import PutPermissions
from pandomq.methods import BasicPublish, QueueDeclare, QueueDelete
from pandomq.node.clients.local_client import LocalClient
from pandomq.node.data import limits
from pandomq.properties import Properties, encode_header

from .data_port import Connection, DataPort

Fields = dict[str, Any]


class Scene:
    """A stream with chunks of three messages, each in a batch of its own."""

    def __init__(self) -> None:
        self.port = DataPort()
        self.local: LocalClient = self.port.node.local_clients.open(
            user="guest", vhost="/", on_answer=lambda answer: None, now_ms=self.port.now_ms
        )
        self.declare("s")
        self.connection = self.port.known()

    def declare(self, name: str, **arguments: Any) -> None:
        stream = {"x-queue-type": "stream", **{f"x-{key.replace('_', '-')}": arguments[key] for key in arguments}}
        self.local.send(QueueDeclare(name, False, True, False, False, False, stream))
        self.port.step()

    def publish(self, count: int, *, body: bytes = b"x" * 400_000, stream: str = "s") -> None:
        for _ in range(count):
            self.port.now_ms += 10
            self.local.publish(BasicPublish("", stream, False, False), encode_header(len(body), Properties()), body)
            self.port.step()

    def ask(self, ask: str, **fields: Any) -> Fields:
        return self.connection.ask({"ask": ask, "stream": "s", **fields})

    def read(self, first: int, end: int, bytes_max: int = 2**24) -> tuple[Fields, list[list[int]]]:
        """The answer, and the offsets in each chunk."""
        answer = self.ask("read", first_offset=first, end_offset=end, bytes_max=bytes_max)
        payload, rows = self.connection.payload, []
        for size in answer.get("sizes", ()):
            rows.append([row.offset for row in chunk_form.decode_rows(payload[:size])])
            payload = payload[size:]
        assert payload == b"" or "error" in answer
        return answer, rows


def test_streams_are_listed_by_pattern() -> None:
    scene = Scene()
    for name in ("orders.eu", "orders.us", "other"):
        scene.declare(name)
    scene.local.send(QueueDeclare("orders.queue", False, True, False, False, False, {}))
    scene.port.step()
    ask = scene.connection.ask
    assert ask({"ask": "streams", "pattern": r"orders\..*"}) == {"streams": ["orders.eu", "orders.us"]}
    assert ask({"ask": "streams", "pattern": "order"}) == {"streams": []}
    assert ask({"ask": "streams", "pattern": "s|other"}) == {"streams": ["other", "s"]}
    for bad in ("(", "x" * 600, 5, None):
        assert ask({"ask": "streams", "pattern": bad})["error"] == 400


def test_the_range_of_a_stream_has_its_offsets_times_and_bytes() -> None:
    scene = Scene()
    empty = {"first_offset": 0, "end_offset": 0, "first_time_us": 0, "last_time_us": 0}
    assert empty.items() <= scene.ask("range").items()
    began_ms = scene.port.now_ms
    scene.publish(7)
    answer = scene.ask("range")
    assert (answer["first_offset"], answer["end_offset"]) == (0, 7)
    assert (answer["first_time_us"], answer["last_time_us"]) == ((began_ms + 10) * 1000, (began_ms + 70) * 1000)
    assert answer["bytes"] > 7 * 400_000


def test_a_stream_that_is_missing_or_not_allowed_is_refused() -> None:
    scene = Scene()
    for name, code in (("nothing", 404), ("queue", 404), ("", 404), (None, 400), ("x" * 2000, 400)):
        scene.local.send(QueueDeclare("queue", False, True, False, False, False, {}))
        for ask in ("range", "offset_at", "index", "read", "store_offset", "stored_offsets"):
            assert scene.ask(ask, stream=name)["error"] == code
    scene.port.node.administer(PutPermissions("/", "guest", ".*", ".*", "other"), lambda fault: None)
    scene.port.step()
    assert scene.connection.ask({"ask": "streams", "pattern": ".*"}) == {"streams": []}
    for ask in ("range", "offset_at", "index", "read", "store_offset", "stored_offsets"):
        answer = scene.ask(ask)
        assert answer["error"] == 403
        assert "read access to queue 's'" in answer["text"]


def test_the_index_lists_the_chunks() -> None:
    scene = Scene()
    scene.publish(7)
    answer = scene.ask("index", first_offset=0, end_offset=7)
    assert [row[:3] for row in answer["chunks"]] == [[0, 2, 3], [3, 5, 3], [6, 6, 1]]
    assert answer["more"] is False
    assert [row[0] for row in scene.ask("index", first_offset=4, end_offset=6)["chunks"]] == [3]
    assert scene.ask("index", first_offset=7, end_offset=9)["chunks"] == []


def test_a_long_index_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INDEX_ROWS_MAX", 2)
    scene = Scene()
    scene.publish(7)
    answer = scene.ask("index", first_offset=0, end_offset=7)
    assert [row[0] for row in answer["chunks"]] == [0, 3]
    assert answer["more"] is True
    assert scene.ask("index", first_offset=6, end_offset=7)["more"] is False


def test_chunks_as_they_are_stored() -> None:
    scene = Scene()
    scene.publish(7)
    answer, rows = scene.read(0, 7)
    assert rows == [[0, 1, 2], [3, 4, 5], [6]]
    assert (answer["ends"], answer["next_offset"]) == ([3, 6, 7], 7)
    # Whole ones, whatever of them was asked for.
    answer, rows = scene.read(4, 5)
    assert rows == [[3, 4, 5]]
    assert (answer["ends"], answer["next_offset"]) == ([6], 6)


def test_chunks_beyond_the_limit_come_later_but_one_always_comes() -> None:
    scene = Scene()
    scene.publish(7)
    assert scene.read(0, 7, 1)[1] == [[0, 1, 2]]
    assert scene.read(3, 7, 2_500_000)[1] == [[3, 4, 5], [6]]


def test_many_small_chunks_in_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROWS_AT_ONCE", 2)
    scene = Scene()
    scene.publish(10)
    assert scene.read(0, 10)[1] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert scene.read(0, 9)[1] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    monkeypatch.setattr(limits, "READ_CHUNKS_MAX", 2)
    assert scene.read(0, 10)[1] == [[0, 1, 2], [3, 4, 5]]


def test_offsets_beyond_the_end_are_no_error() -> None:
    scene = Scene()
    scene.publish(2)
    for first, end in ((2, 9), (5, 9), (1, 1), (1, 0)):
        answer, rows = scene.read(first, end)
        assert (rows, answer["next_offset"]) == ([], first)


def test_the_open_chunk_grows() -> None:
    scene = Scene()
    scene.publish(1)
    assert scene.read(0, 9)[1] == [[0]]
    scene.publish(1)
    answer, rows = scene.read(1, 9)
    assert rows == [[0, 1]]
    assert answer["next_offset"] == 2


def test_chunks_that_retention_has_dropped_are_gone() -> None:
    scene = Scene()
    scene.declare("short", max_length_bytes=3_000_000, stream_max_segment_size_bytes=1_000_000)
    scene.publish(30, stream="short")
    there = scene.ask("range", stream="short")
    assert there["first_offset"] > 0
    answer = scene.ask("read", stream="short", first_offset=0, end_offset=30, bytes_max=100)
    assert (answer["error"], answer["first_offset"]) == (410, there["first_offset"])
    assert "sizes" in scene.ask("read", stream="short", first_offset=there["first_offset"], end_offset=30, bytes_max=1)


@pytest.mark.parametrize(
    "fields",
    [
        {"first_offset": -1, "end_offset": 3, "bytes_max": 5},
        {"first_offset": 0, "end_offset": "3", "bytes_max": 5},
        {"first_offset": 0, "end_offset": 3},
        {"first_offset": True, "end_offset": 3, "bytes_max": 5},
        {"first_offset": 2**63, "end_offset": 3, "bytes_max": 5},
        {"first_offset": 1.5, "end_offset": 3, "bytes_max": 5},
    ],
)
def test_numbers_that_are_none(fields: Fields) -> None:
    assert Scene().ask("read", **fields)["error"] == 400


def test_the_offset_of_a_time() -> None:
    scene = Scene()
    began_us = scene.port.now_ms * 1000
    scene.publish(7)
    for time_us, offset in ((0, 0), (began_us + 10_000, 0), (began_us + 35_000, 3), (began_us + 70_001, 7)):
        assert scene.ask("offset_at", time_us=time_us) == {"offset": offset}


def test_offsets_by_name() -> None:
    scene = Scene()
    scene.publish(3)
    assert scene.ask("stored_offsets") == {"offsets": {}}
    assert scene.ask("store_offset", name="me", offset=2) == {}
    assert scene.ask("store_offset", name="you", offset=1) == {}
    assert scene.ask("store_offset", name="me", offset=3) == {}
    assert scene.ask("stored_offsets") == {"offsets": {"me": 3, "you": 1}}
    assert scene.ask("store_offset", name="", offset=3)["error"] == 406


# Waiting for a stream to grow.


def waiting(scene: Scene, **fields: Any) -> Connection:
    connection = scene.port.known()
    connection.say({"ask": "range", "stream": "s", **fields})
    return connection


def test_a_reader_that_waits_is_answered_as_soon_as_there_is_more() -> None:
    scene = Scene()
    scene.publish(2)
    connection = waiting(scene, beyond=2, wait_ms=4000)
    assert connection.octets == b""
    scene.publish(1)
    assert connection.answer()["end_offset"] == 3


def test_a_reader_that_waits_is_answered_when_its_time_is_over() -> None:
    scene = Scene()
    patient = waiting(scene, beyond=0, wait_ms=1000)
    greedy = waiting(scene, beyond=0, wait_ms=10**9)
    scene.port.pass_ms(900)
    assert patient.octets == b""
    scene.port.pass_ms(100)
    assert patient.answer()["end_offset"] == 0
    scene.port.pass_ms(limits.WAIT_MS_MAX)
    assert greedy.answer()["end_offset"] == 0
    assert scene.port.node.data.services.watches.next_ms > 2**60


def test_a_reader_of_messages_that_are_there_does_not_wait() -> None:
    scene = Scene()
    scene.publish(2)
    assert waiting(scene, beyond=1, wait_ms=4000).answer()["end_offset"] == 2
    assert waiting(scene, beyond=5, wait_ms=0).answer()["end_offset"] == 2


def test_a_stream_that_is_deleted_is_not_waited_for() -> None:
    scene = Scene()
    connection = waiting(scene, beyond=0, wait_ms=4000)
    scene.local.send(QueueDelete("s", False, False, False))
    scene.port.step()
    assert connection.answer()["error"] == 404


def test_a_reader_that_waits_may_disconnect() -> None:
    scene = Scene()
    waiting(scene, beyond=0, wait_ms=4000).lose()
    scene.publish(1)
    assert scene.ask("range")["end_offset"] == 1
