"""The client against brokers that stand in: what it asks, whom, and what it makes of the answers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pandomq import chunk_form
from pandomq.chunk_form import MessageRow
from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import NoSuchStream, NotAllowed, OffsetGone, PreconditionFailed, Unreachable
from pandomq.data_client.records import IndexedChunk, StreamRange

from .broker_double import BrokerDouble, Reply, broker_double

Fields = dict[str, Any]
ROWS = 10
"""Of each chunk of the stream that the doubles have."""


def chunk(number: int) -> bytes:
    rows = [
        MessageRow(offset, 1, b"", b"s", b"", b"%d" % offset) for offset in range(ROWS * number, ROWS * (number + 1))
    ]
    return chunk_form.encode(rows)


def stream_of(count: int, per_answer: int = 2) -> Any:
    """A stream of so many chunks of ten rows."""

    def behave(fields: Fields, _payload: bytes) -> Reply:
        match fields["ask"]:
            case "range":
                return {
                    "first_offset": 0,
                    "end_offset": ROWS * count,
                    "first_time_us": 1,
                    "last_time_us": 2,
                    "bytes": 3,
                }, b""
            case "read":
                first = fields["first_offset"] // ROWS
                last = min(first + per_answer, count, -(-fields["end_offset"] // ROWS))
                chunks = [chunk(number) for number in range(first, last)]
                ends = [ROWS * (number + 1) for number in range(first, last)]
                answer = {
                    "sizes": list(map(len, chunks)),
                    "ends": ends,
                    "next_offset": ends[-1] if ends else fields["first_offset"],
                }
                return answer, b"".join(chunks)
            case "index":
                first = fields["first_offset"] // ROWS
                rows = [[ROWS * at, ROWS * at + 9, ROWS, 700, at, at] for at in range(first, min(first + 2, count))]
                return {"chunks": rows, "more": first + 2 < count}, b""
            case _:
                return {"error": 400, "text": "what?"}, b""

    return behave


def urls(*doubles: BrokerDouble) -> str:
    return f"amqp://user:secret@{','.join(double.host for double in doubles)}"


def test_a_range() -> None:
    with broker_double(stream_of(4)) as double, DataClient(double.url, timeout_s=5) as client:
        assert client.range("s") == StreamRange(0, 40, 1, 2, 3)
        assert double.asked[1] == {"ask": "range", "stream": "s"}


def test_an_index_in_several_answers() -> None:
    with broker_double(stream_of(5)) as double, DataClient(double.url, timeout_s=5) as client:
        assert client.index("s", 0, 50) == [IndexedChunk(10 * at, 10 * at + 9, 10, 700, at, at) for at in range(5)]


def test_chunks_come_in_order_with_one_request_ahead() -> None:
    with broker_double(stream_of(7)) as double, DataClient(double.url, timeout_s=5) as client:
        slices = list(client.chunks("s", 3, 66))
        assert [bytes(found.chunk) for found in slices] == [chunk(number) for number in range(7)]
        assert [(found.first_offset, found.end_offset) for found in slices] == [
            (3, 10), (10, 20), (20, 30), (30, 40), (40, 50), (50, 60), (60, 66)
        ]  # fmt: skip
        # The connection is kept for who reads next.
        assert len(list(client.chunks("s", 0, 10))) == 1
        assert [fields["ask"] for fields in double.asked].count("hello") == 1


def test_a_reader_that_stops_halfway_leaves_nothing_behind() -> None:
    with broker_double(stream_of(7)) as double, DataClient(double.url, timeout_s=5) as client:
        reader = client.chunks("s", 0, 70)
        next(reader)
        reader.close()
        assert client.range("s").end_offset == 40 + 30
        assert [bytes(found.chunk) for found in client.chunks("s", 0, 20)] == [chunk(0), chunk(1)]


def test_reading_goes_on_at_another_broker() -> None:
    whole = stream_of(6)

    def dies_at_20(fields: Fields, payload: bytes) -> Reply:
        return None if fields.get("first_offset", 0) >= 20 else whole(fields, payload)

    with broker_double(dies_at_20) as first, broker_double(whole) as second:
        client = DataClient(urls(first, second), timeout_s=10)
        assert [bytes(found.chunk) for found in client.chunks("s", 0, 60)] == [chunk(number) for number in range(6)]
        client.close()


def test_a_damaged_chunk_is_had_from_another_broker() -> None:
    whole = stream_of(6)

    def damaged(fields: Fields, payload: bytes) -> Reply:
        answer, octets = whole(fields, payload)
        return answer, octets[:-1] + b"?"

    with broker_double(damaged) as first, broker_double(whole) as second:
        with DataClient(urls(first, second), timeout_s=10) as client:
            assert [bytes(found.chunk) for found in client.chunks("s", 0, 60)] == [chunk(number) for number in range(6)]
            assert len(client.read("s", 0, 60).slices) == 2
        with DataClient(urls(first), timeout_s=0.3) as client, pytest.raises(Unreachable, match="damaged chunk"):
            list(client.chunks("s", 0, 60))


def test_a_broker_that_is_behind_is_waited_for() -> None:
    known = [2]

    def catches_up(fields: Fields, payload: bytes) -> Reply:
        answer = stream_of(known[0])(fields, payload)
        known[0] = 5
        return answer

    with broker_double(catches_up) as double, DataClient(double.url, timeout_s=10) as client:
        assert len(list(client.chunks("s", 0, 50))) == 5


def test_refusals_are_raised_at_once() -> None:
    answers: dict[str, Fields] = {
        "gone": {"error": 410, "text": "too old", "first_offset": 77},
        "absent": {"error": 404, "text": "no stream 'absent'"},
        "secret": {"error": 403, "text": "not yours"},
        "odd": {"error": 406, "text": "no"},
    }
    with broker_double(lambda fields, _: (answers[fields["stream"]], b"")) as double:
        client = DataClient(double.url, timeout_s=30)
        with pytest.raises(OffsetGone) as gone:
            client.read("gone", 0, 10)
        assert gone.value.first_offset == 77
        with pytest.raises(OffsetGone):
            list(client.chunks("gone", 0, 10))
        with pytest.raises(NoSuchStream, match="no stream 'absent'"):
            client.range("absent")
        with pytest.raises(NotAllowed):
            client.range("secret")
        with pytest.raises(PreconditionFailed):
            client.range("odd")
        client.close()


def test_a_wrong_password_is_raised_at_once() -> None:
    with broker_double(stream_of(1)) as double:
        client = DataClient(f"amqp://user:hidden-word@{double.host}", timeout_s=30)
        with pytest.raises(NotAllowed) as caught:
            client.range("s")
        assert "hidden-word" not in repr(caught.value)


def test_requests_that_only_the_root_handles_go_to_the_root() -> None:
    commits: list[Fields] = []

    def root(fields: Fields, _payload: bytes) -> Reply:
        commits.append(fields)
        return {"batch": 7}, b""

    with (
        broker_double(root) as second,
        broker_double(stream_of(4), role="backup", root=second.data_address) as first,
    ):
        client = DataClient(first.url, timeout_s=10)
        assert client.range("s").end_offset == 40
        assert client.last_batch("q") == 7
        assert [fields["ask"] for fields in commits] == ["last_batch"]
        # Reads stay where they were.
        client.range("s")
        assert len(commits) == 1
        with client.at_root() as at_root:
            assert at_root.ask("anything", {})[0] == {"batch": 7}
        client.close()


def test_a_former_root_names_the_next_one() -> None:
    with broker_double(lambda fields, _: ({"batch": 8}, b"")) as second:
        deposed = {"error": 421, "text": "not the root", "root": second.data_address}
        with broker_double(lambda fields, _: (deposed, b"")) as first:
            client = DataClient(urls(first, second), timeout_s=10)
            assert client.last_batch("q") == 8
            client.close()


def test_a_request_that_cannot_be_handled_now_is_tried_again() -> None:
    answers: list[Fields] = [{"error": 503, "text": "in a moment"}, {"error": 503, "text": "in a moment"}, {"batch": 9}]
    with broker_double(lambda fields, _: (answers.pop(0), b"")) as double:
        client = DataClient(double.url, timeout_s=10)
        assert client.last_batch("q") == 9
        client.close()


def test_a_missing_broker_is_reported_when_the_time_is_over() -> None:
    with broker_double(stream_of(1)) as double:
        url = double.url
    client = DataClient(url, timeout_s=0.5)
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        client.range("s")
    assert 0.4 < time.monotonic() - began < 10
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


def test_a_broker_without_a_data_port() -> None:
    with broker_double(stream_of(1), properties={}) as double, pytest.raises(Unreachable, match="has no data port"):
        DataClient(double.url, timeout_s=0.3).range("s")


def test_a_stream_that_does_not_grow_is_reported_when_the_time_is_over() -> None:
    with (
        broker_double(stream_of(1)) as double,
        pytest.raises(Unreachable, match="could not be read from offset 10 to 50"),
    ):
        list(DataClient(double.url, timeout_s=0.5).chunks("s", 0, 50))


@pytest.mark.parametrize(
    "answer", [{"sizes": [5], "ends": [10], "next_offset": 10}, {"sizes": [], "ends": [1], "next_offset": 1},
               {"sizes": [], "ends": []}, {"sizes": "x", "ends": [], "next_offset": 3}]
)  # fmt: skip
def test_a_malformed_answer_is_tried_again(answer: Fields) -> None:
    with broker_double(lambda fields, _: (answer, b"")) as double, pytest.raises(Unreachable):
        DataClient(double.url, timeout_s=0.3).read("s", 0, 10)


def test_a_broker_that_has_none_names_those_of_others() -> None:
    with broker_double(stream_of(4)) as primary:
        told = {"data_brokers": ["127.0.0.1:1", primary.data_address]}
        with (
            broker_double(stream_of(1), properties=told) as secondary,
            DataClient(secondary.url, timeout_s=10) as client,
        ):
            assert client.range("s").end_offset == 40
