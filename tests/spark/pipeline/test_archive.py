"""An archive that runs on, is interrupted, fails, or finds missing rows; and the rows that brokers keep for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from pandomq.data_client.client import DataClient
from pandomq.pipeline.archive import Archive, ArchiveOptions
from pandomq.pipeline.lake import Lake, LakeFault
from pandomq.pipeline.summary import Summary
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.integration.waiting import wait_until
from tests.spark.ledger import declare_stream
from tests.spark.pipeline.test_lake_jobs import Cut, archived, publish, url_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("archives") / "b")) as broker:
        yield broker


def declare(broker: ConfiguredBroker, stream: str, **arguments: Any) -> None:
    with contextlib.closing(broker.connect()) as connection:
        names = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        connection.channel().queue_declare(stream, durable=True, arguments={"x-queue-type": "stream", **names})


def fill(broker: ConfiguredBroker, stream: str, bodies: list[bytes]) -> None:
    with contextlib.closing(broker.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish("", stream, body)


class Running:
    """An archive in a thread of its own."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.summary: Summary | None = None
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.summary = self._archive.run()
        except BaseException as failure:
            self.failure = failure

    def wait_for(self, rows: int) -> None:
        wait_until(lambda: self._archive.rows >= rows or not self._thread.is_alive(), f"{rows} rows", 120)
        assert self.failure is None

    def end(self) -> Summary:
        self._archive.stop()
        self._thread.join(60)
        assert not self._thread.is_alive() and self.failure is None and self.summary is not None
        return self.summary


@pytest.mark.proves("S4")
def test_streams_that_appear_while_it_goes_on(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    declare(broker, "live.a", stream_max_segment_size_bytes=1000, max_length_bytes=1, retain_until_archived="lake")
    same, others = [b"the same" * 20] * 100, [b"%d" % number for number in range(10)]
    fill(broker, "live.a", same)
    directory = tmp_path / "lake"
    archive = Archive(spark, Lake(directory, delta=True), ArchiveOptions(url_of(broker), r"live\..*", 0.0, name="lake"))
    running = Running(archive)
    running.wait_for(100)
    publish(broker, "live.b", range(30))
    running.wait_for(130)
    fill(broker, "live.a", others)
    publish(broker, "live.c", range(5))
    running.wait_for(145)
    summary = running.end()
    assert summary.facts["rows"] == 145
    expected = {
        "live.a": list(enumerate(same + others)),
        "live.b": [(at, b"%d" % at) for at in range(30)],
        "live.c": [(at, b"%d" % at) for at in range(5)],
    }
    assert archived(spark, Lake(directory)) == expected
    # Other readers find the same in the Delta table.
    table: dict[str, list[tuple[int, bytes]]] = {}
    for row in DeltaTable(directory).to_pyarrow_table().sort_by("offset").to_pylist():
        table.setdefault(row["stream"], []).append((row["offset"], row["body"]))
    assert table == expected
    with DataClient(url_of(broker)) as client:
        assert client.stored_offsets("live.a") == {"lake": 110}
        assert client.stored_offsets("live.b") == {"lake": 30}
        # The stream has waited for its archive only.
        assert 50 < client.range("live.a").first_offset < 110


@pytest.mark.parametrize("hurried", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_archive_that_fails_while_it_is_interrupted_raises_unless_it_is_hurried(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hurried: bool
) -> None:
    stream = f"interrupted.{hurried}"
    publish(broker, stream, range(20))
    options = ArchiveOptions(url_of(broker), stream, 0.0)
    archive = Archive(spark, Lake(tmp_path / "lake"), options)

    def cut(*_: Any) -> None:
        archive.stop()
        if hurried:
            archive.stop()
        raise Cut("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "_write", cut)
        if hurried:
            assert archive.run().verdict == "there were no new messages"
        else:
            with pytest.raises(Exception, match="the disk is full"):
                archive.run()
    again = Archive(spark, Lake(tmp_path / "lake"), ArchiveOptions(url_of(broker), stream, once=True)).run()
    assert again.facts["rows in the lake"] == 20


def test_an_interrupted_one_finishes_its_batch(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(broker, "finished", range(20))
    archive = Archive(spark, Lake(tmp_path / "lake"), ArchiveOptions(url_of(broker), "finished", 0.0, rows_per_batch=5))
    written = Lake._write

    def write(lake: Lake, record: Any) -> None:
        if record.number == 1:
            archive.stop()
        written(lake, record)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "_write", write)
        assert archive.run().facts["rows"] == 10
    again = Archive(spark, Lake(tmp_path / "lake"), ArchiveOptions(url_of(broker), "finished", once=True)).run()
    assert (again.facts["rows"], again.facts["rows in the lake"]) == (10, 20)


@pytest.mark.slow
def test_messages_that_are_gone_are_reported(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    small = {"stream_max_segment_size_bytes": 1000, "max_length_bytes": 3000}
    declare(broker, "gone.short", **small)
    declare_stream(broker.connect, "gone.deleted")
    fill(broker, "gone.short", [b"x" * 100] * 5)
    fill(broker, "gone.deleted", [b"x" * 100] * 5)
    lake = Lake(tmp_path / "lake")
    options = ArchiveOptions(url_of(broker), "gone.*", once=True)
    assert Archive(spark, lake, options).run().facts["rows"] == 10
    fill(broker, "gone.short", [b"x" * 100] * 200)
    with contextlib.closing(broker.connect()) as connection:
        connection.channel().queue_delete("gone.deleted")
    with pytest.raises(Exception, match="DataLoss"):
        Archive(spark, lake, options).run()
    with DataClient(url_of(broker)) as client:
        first_offset = client.range("gone.short").first_offset
    summary = Archive(spark, lake, ArchiveOptions(url_of(broker), "gone.*", once=True, allow_loss=True)).run()
    assert summary.facts["messages missing"] == first_offset - 5 > 0
    assert summary.verdict.endswith("messages were deleted before they could be archived")
    assert summary.facts["rows in the lake"] == 10 + 205 - first_offset


def test_a_lake_of_something_else(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    publish(broker, "other", range(3))
    lake = Lake(tmp_path / "lake")
    Archive(spark, lake, ArchiveOptions(url_of(broker), "other", once=True)).run()
    with pytest.raises(LakeFault, match="has streams of vhost '/'"):
        Archive(spark, lake, ArchiveOptions(url_of(broker) + "else", "other", once=True)).run()
    lake.checkpoint.rename(tmp_path / "away")
    with pytest.raises(LakeFault, match="checkpoint is missing"):
        Archive(spark, lake, ArchiveOptions(url_of(broker), "other", once=True)).run()
