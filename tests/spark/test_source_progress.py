"""The driver's part of streaming queries, against a broker's double: offsets, limits, loss, failover; and tasks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from pandomq.chunk_form import MessageRow
from pandomq.data_client.failures import NoSuchStream, NotAllowed
from pandomq.properties import Properties, encode_header
from pandomq.spark import stream_progress
from pandomq.spark.batch_reader import BatchReader, RangePartition
from pandomq.spark.columns import Shape
from pandomq.spark.option_values import BadOption
from pandomq.spark.reading import DataLoss, RangeReader
from pandomq.spark.source_options import SourceOptions
from pandomq.spark.splitting import OffsetRange
from pandomq.spark.stream_progress import StreamProgress
from tests.spark.stream_port_double import StreamPortDouble

HEADER = encode_header(0, Properties())


@pytest.fixture
def port() -> Iterator[StreamPortDouble]:
    with StreamPortDouble() as double:
        yield double


def fill(port: StreamPortDouble, name: str, chunks: int, rows: int = 10) -> None:
    stream = port.stream(name)
    for _ in range(chunks):
        offsets = range(stream.end, stream.end + rows)
        stream.append([MessageRow(at, at * 1_000_000, b"", b"k", HEADER, f"{name} {at}".encode()) for at in offsets])


def options(port: StreamPortDouble, **given: str) -> SourceOptions:
    subject = {} if {"streams", "streamPattern"} & given.keys() else {"stream": "a"}
    return SourceOptions.of({"url": port.url, "timeout": "10s", **subject, **given}, streaming=True)


@pytest.fixture
def made() -> Iterator[list[StreamProgress]]:
    several: list[StreamProgress] = []
    yield several
    for one in several:
        one.close()


def begin(made: list[StreamProgress], found: SourceOptions) -> StreamProgress:
    made.append(StreamProgress(found, found.connection.root_client()))
    return made[-1]


def test_a_query_starts_at_the_end_by_default(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 3)
    assert begin(made, options(port)).initial() == {"a": 30}
    assert begin(made, options(port, startingOffsets="earliest")).initial() == {"a": 0}
    assert begin(made, options(port, startingOffsets='{"a": 12}')).initial() == {"a": 12}
    assert begin(made, options(port, startingTimestamp="1970-01-01T00:00:25Z")).initial() == {"a": 25}


def test_news_are_seen_and_an_idle_query_does_not_ask_all_the_time(
    port: StreamPortDouble, made: list[StreamProgress]
) -> None:
    fill(port, "a", 1)
    progress = begin(made, options(port))
    start = progress.initial()
    port.asks.clear()
    assert progress.newest(start, None, None) == start
    asked = len(port.asks)
    assert 2 <= asked <= stream_progress.IDLE_WAIT_S / stream_progress.IDLE_PAUSE_S + 4
    fill(port, "a", 2)
    assert progress.newest(start, None, None) == {"a": 30}
    assert progress.latest == {"a": 30}


def test_limits_of_a_micro_batch(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 10)
    fill(port, "b", 30)
    progress = begin(made, options(port, streams="a, b", startingOffsets="earliest"))
    start = progress.initial()
    assert progress.newest(start, 40, None) == {"a": 10, "b": 30}
    assert progress.latest == {"a": 100, "b": 300}
    chunk_bytes = len(port.streams["a"].chunks[0][1])
    limited = progress.newest(start, None, 8 * chunk_bytes)
    assert limited == {"a": pytest.approx(20, abs=2), "b": pytest.approx(60, abs=2)}
    assert sum(progress.newest(start, None, 1).values()) >= 1


def test_a_pattern_finds_streams_that_appear_later_and_reads_them_from_their_beginning(
    port: StreamPortDouble, made: list[StreamProgress], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pandomq.spark.positions.STREAMS_FRESH_S", 0.0)
    fill(port, "log.a", 1)
    fill(port, "other", 1)
    progress = begin(made, options(port, streamPattern=r"log\..*"))
    start = progress.initial()
    assert start == {"log.a": 10}
    fill(port, "log.b", 2)
    end = progress.newest(start, None, None)
    assert end == {"log.a": 10, "log.b": 20}
    assert progress.pieces(start, end) == [OffsetRange("log.b", 0, 20)]


def test_available_now_ends_where_the_stream_ended_when_it_began(
    port: StreamPortDouble, made: list[StreamProgress]
) -> None:
    fill(port, "a", 2)
    progress = begin(made, options(port, startingOffsets="earliest"))
    progress.aim()
    fill(port, "a", 5)
    assert progress.newest({"a": 0}, 15, None) == {"a": 15}
    assert progress.newest({"a": 15}, 15, None) == {"a": 20}
    assert progress.newest({"a": 20}, 15, None) == {"a": 20}


def test_partitions(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 12)
    progress = begin(made, options(port, minPartitions="4"))
    pieces = progress.pieces({"a": 0}, {"a": 120})
    assert [(piece.first, piece.end) for piece in pieces] == [(0, 30), (30, 60), (60, 90), (90, 120)]
    assert progress.pieces({"a": 7}, {"a": 7}) == []


def test_a_small_batch_is_planned_with_one_question(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 12)
    progress = begin(made, options(port, startingOffsets="earliest"))
    start = progress.initial()
    port.asks.clear()
    end = progress.newest(start, 25, None)
    assert progress.pieces(start, end) == [OffsetRange("a", 0, 25)]
    assert port.asks == ["range"]
    # A plan that was made before this process began is checked.
    other = begin(made, options(port, startingOffsets="earliest"))
    assert other.pieces(end, {"a": 30}) == [OffsetRange("a", 25, 30)]
    assert port.asks.count("range") == 2


# Errors.


def test_a_stream_that_is_not_there_or_not_allowed_is_named(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    with pytest.raises(NoSuchStream, match="stream 'a' does not exist"):
        begin(made, options(port)).initial()
    fill(port, "a", 1)
    port.forbidden.add("a")
    with pytest.raises(NotAllowed, match="may not read stream a"):
        begin(made, options(port)).initial()


def test_offsets_of_streams_that_match_nothing_are_refused(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 1)
    with pytest.raises(BadOption, match="b, which the query does not read"):
        begin(made, options(port, streamPattern="a.*", startingOffsets='{"b": 1}')).initial()


def test_retention_that_overtakes_a_query_is_loss_of_data(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 5)
    port.streams["a"].drop_chunks(3)
    strict, lenient = begin(made, options(port)), begin(made, options(port, failOnDataLoss="false"))
    for ask in (
        lambda: strict.newest({"a": 12}, None, None),
        lambda: strict.pieces({"a": 12}, {"a": 50}),
        lambda: begin(made, options(port, startingOffsets='{"a": 12}')).initial(),
    ):
        with pytest.raises(DataLoss, match="begins at offset 30, after the wanted offset 12"):
            ask()
    assert lenient.newest({"a": 12}, None, None) == {"a": 50}
    assert lenient.pieces({"a": 12}, {"a": 50}) == [OffsetRange("a", 30, 50)]


def test_a_stream_that_was_declared_anew_or_deleted_is_loss_of_data(
    port: StreamPortDouble, made: list[StreamProgress]
) -> None:
    fill(port, "a", 1)
    strict, lenient = begin(made, options(port)), begin(made, options(port, failOnDataLoss="false"))
    with pytest.raises(DataLoss, match="ends at offset 10, before the wanted offset 30"):
        strict.newest({"a": 30}, None, None)
    assert lenient.newest({"a": 30}, None, None) == {"a": 10}
    del port.streams["a"]
    with pytest.raises(DataLoss, match="stream 'a' no longer exists"):
        strict.newest({"a": 10}, None, None)
    assert lenient.newest({"a": 10}, None, None) == {}


def test_a_failover_is_waited_for(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 1)
    progress = begin(made, options(port, startingOffsets="earliest"))
    start = progress.initial()
    port.close()
    timer = threading.Timer(0.5, port.open)
    timer.start()
    assert progress.newest(start, None, None) == {"a": 10}
    timer.join()


def test_brokers_that_stay_away_are_no_news(port: StreamPortDouble, made: list[StreamProgress]) -> None:
    fill(port, "a", 1)
    progress = begin(made, options(port, startingOffsets="earliest", timeout="300ms"))
    start = progress.initial()
    port.close()
    assert progress.newest(start, None, None) == start
    port.open()
    assert progress.newest(start, None, None) == {"a": 10}


# Batches.


def ranges_of_batch(port: StreamPortDouble, **given: str) -> list[OffsetRange]:
    found = SourceOptions.of({"url": port.url, "timeout": "10s", "stream": "a", **given}, streaming=False)
    partitions = BatchReader(found, Shape(("offset", "body"))).partitions()
    return [one.wanted for one in partitions if isinstance(one, RangePartition)]


def test_a_batch_that_begins_behind_the_end_is_loss_of_data(port: StreamPortDouble) -> None:
    fill(port, "a", 1)
    for further in ({}, {"endingOffsets": '{"a": 5}'}):
        with pytest.raises(DataLoss, match="ends at offset 10, before the wanted offset 1000"):
            ranges_of_batch(port, startingOffsets='{"a": 1000}', **further)
    assert ranges_of_batch(port, startingOffsets='{"a": 1000}', failOnDataLoss="false") == []
    # At the end there is nothing new, and a time may lie in the future.
    assert ranges_of_batch(port, startingOffsets='{"a": 10}') == []
    assert ranges_of_batch(port, startingTimestamp="2126-11-16T00:00:00Z") == []
    assert ranges_of_batch(port, startingOffsets='{"a": 3}') == [OffsetRange("a", 3, 10)]


# Executors.


def range_reader(port: StreamPortDouble, *, fail_on_data_loss: bool = True) -> RangeReader:
    return RangeReader(options(port).connection, Shape(("offset", "body")), fail_on_data_loss)


def offsets_of(reader: RangeReader, first: int, end: int) -> list[int]:
    return [offset for batch in reader.batches(OffsetRange("a", first, end)) for offset in batch["offset"].to_pylist()]


def test_a_task_reads_its_range_and_keeps_its_connection(port: StreamPortDouble) -> None:
    fill(port, "a", 20)
    reader = range_reader(port)
    assert offsets_of(reader, 15, 133) == list(range(15, 133))
    hellos = port.asks.count("hello")
    assert offsets_of(reader, 0, 5) == list(range(5))
    assert port.asks.count("hello") == hellos


def test_a_task_goes_on_through_a_failover(port: StreamPortDouble) -> None:
    fill(port, "a", 200)
    batches = range_reader(port).batches(OffsetRange("a", 0, 2000))
    found = next(batches)["offset"].to_pylist()
    port.close()
    timer = threading.Timer(0.3, port.open)
    timer.start()
    for batch in batches:
        found += batch["offset"].to_pylist()
    timer.join()
    assert found == list(range(2000))


def test_a_task_waits_for_a_broker_that_is_behind(port: StreamPortDouble) -> None:
    fill(port, "a", 1)
    timer = threading.Timer(0.3, fill, (port, "a", 1))
    timer.start()
    assert offsets_of(range_reader(port), 0, 20) == list(range(20))
    timer.join()


def test_a_task_that_is_overtaken_by_retention(port: StreamPortDouble) -> None:
    fill(port, "a", 5)
    port.streams["a"].drop_chunks(2)
    with pytest.raises(DataLoss, match="begins at offset 20, after the wanted offset 5"):
        offsets_of(range_reader(port), 5, 50)
    assert offsets_of(range_reader(port, fail_on_data_loss=False), 5, 50) == list(range(20, 50))


def test_a_task_that_is_not_read_to_its_end_leaves_no_connection_behind(port: StreamPortDouble) -> None:
    fill(port, "a", 2000)
    batches = range_reader(port).batches(OffsetRange("a", 0, 20_000))
    next(batches)
    batches.close()
    deadline = time.monotonic() + 10
    while port.connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not port.connections
