"""Streams of a real broker to a lake and back: each row once, after any interruption."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pandomq.data_client.client import DataClient
from pandomq.pipeline.archive import Archive, ArchiveOptions
from pandomq.pipeline.compaction import compact
from pandomq.pipeline.lake import Lake, LakeFault
from pandomq.pipeline.replay import insist_on_known, replay
from pandomq.pipeline.replay_plan import Pace, Selection, draw_up, load, save
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.spark.ledger import declare_stream, read_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Cut(Exception):
    """The job is ended here."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("lakes") / "b")) as broker:
        yield broker


def url_of(broker: ConfiguredBroker) -> str:
    return f"amqp://guest:guest@127.0.0.1:{broker.port}/"


def publish(broker: ConfiguredBroker, stream: str, numbers: range) -> None:
    declare_stream(broker.connect, stream)
    with contextlib.closing(broker.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in numbers:
            channel.basic_publish("", stream, b"%d" % number)


def archived(spark: SparkSession, lake: Lake) -> dict[str, list[tuple[int, bytes]]]:
    found: dict[str, list[tuple[int, bytes]]] = {}
    paths = [str(lake.directory / file.path) for file in lake.files()]
    for row in spark.read.option("basePath", str(lake.directory)).parquet(*paths).orderBy("stream", "offset").collect():
        found.setdefault(row["stream"], []).append((row["offset"], bytes(row["body"])))
    return found


@pytest.mark.proves("S4")
def test_an_archive_that_is_cut_off_has_each_row_once(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ArchiveOptions(url_of(broker), "kept\\..*", once=True)
    publish(broker, "kept.a", range(200))
    directory = tmp_path / "lake"
    written = Lake._write

    def cut_before(*_: Any) -> None:
        raise Cut("the files are in their places, and the record is not written")

    def cut_after(lake: Lake, record: Any) -> None:
        written(lake, record)
        raise Cut("the record is written, and Spark does not know that the batch is done")

    for count, cut in enumerate((cut_before, cut_after)):
        with monkeypatch.context() as patch:
            patch.setattr(Lake, "_write", cut)
            with pytest.raises(Exception, match="Cut"):
                Archive(spark, Lake(directory), options).run()
        publish(broker, "kept.b", range(count * 10, count * 10 + 10))
        Archive(spark, Lake(directory), options).run()
        found = archived(spark, Lake(directory))
        assert found["kept.a"] == [(at, b"%d" % at) for at in range(200)]
        assert found["kept.b"] == [(at, b"%d" % at) for at in range(count * 10 + 10)]
        publish(broker, "kept.c", range(1))


@pytest.mark.proves("S4")
def test_compaction_and_replay(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "lake")
    for step in range(3):
        publish(broker, "again.a", range(step * 100, step * 100 + 100))
        summary = Archive(spark, lake, ArchiveOptions(url_of(broker), "again.*", once=True)).run()
        assert summary.facts["rows"] == 100
    before, files = archived(spark, lake), len(lake.files())
    assert compact(spark, lake).facts["files before"] == files
    assert archived(spark, lake) == before and len(lake.files()) == 1
    assert compact(spark, lake).verdict == "there were no files to merge"

    declare_stream(broker.connect, "copy")
    plan = draw_up("r1", lake.files(), Selection("again.*", first_offset=50, where="offset % 2 = 0"), Pace(rate=50))
    assert len(plan.slices) == 3
    save(lake, plan)
    target = {"url": url_of(broker), "stream": "copy"}

    def cut(*_: Any) -> None:
        raise Cut

    with monkeypatch.context() as patch:
        # A slice is published, and not recorded.
        patch.setattr("pandomq.pipeline.replay.save", cut)
        with pytest.raises(Cut):
            replay(spark, lake, plan, target, sleep=lambda _: None)
    resumed = load(lake, "r1")
    assert resumed is not None and resumed.done == 0
    slept: list[float] = []
    assert replay(spark, lake, resumed, target, sleep=slept.append).facts["rows"] == 125
    assert len(slept) == 3
    assert read_stream(broker.connect, "copy", 125) == [b"%d" % at for at in range(50, 300, 2)]
    again = load(lake, "r1")
    assert again is not None
    assert replay(spark, lake, again, target).verdict == "all 125 rows had been published before"
    with DataClient(url_of(broker)) as client:
        insist_on_known(again, target, client.last_batch)
        with pytest.raises(LakeFault, match="do not remember it"):
            insist_on_known(again, {"stream": "elsewhere"}, client.last_batch)
    # The same name in another lake is another replay.
    other = Lake(tmp_path / "other")
    Archive(spark, other, ArchiveOptions(url_of(broker), "again.*", once=True)).run()
    assert replay(spark, other, draw_up("r1", other.files(), Selection(), Pace()), target).facts["rows"] == 300
    assert len(read_stream(broker.connect, "copy", 425)) == 425


def test_nothing_to_archive_and_nothing_to_replay(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    declare_stream(broker.connect, "silent")
    summary = Archive(spark, lake, ArchiveOptions(url_of(broker), "silent", once=True)).run()
    assert summary.verdict == "there were no new messages" and lake.files() == []
    with pytest.raises(LakeFault, match="no row in the lake"):
        replay(spark, lake, draw_up("r", [], Selection(), Pace()), {"url": url_of(broker), "stream": "silent"})
