"""Jobs as processes that are killed in the middle and started again at once: each row and each event counts once."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from pandomq.data_client.client import DataClient
from pandomq.pipeline.lake import Lake
from pandomq.pipeline.rollup.steps import RollupFiles
from pandomq.trace_form import TRACE_STREAM
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.spark import ledger
from tests.spark.pipeline.job_process import job
from tests.spark.pipeline.test_lake_jobs import publish, url_of
from tests.spark.pipeline.test_rollup import LATENESS_S, SECOND_US, check, results
from tests.spark.pipeline.test_rollup import publish as publish_traces
from tests.support.traces import batches, bodies

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
SEEDS = 200


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("killed") / "b")) as broker:
        yield broker


def archived(lake: Path) -> dict[str, list[tuple[int, bytes]]]:
    """Returns offset and body of each stream's rows there, without Spark."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for file in Lake(lake).files():
        table = parquet.ParquetFile(lake / file.path).read(columns=["offset", "body"])
        rows = zip(table["offset"].to_pylist(), table["body"].to_pylist(), strict=True)
        found.setdefault(file.stream, []).extend(rows)
    return {stream: sorted(rows) for stream, rows in found.items()}


def is_being_written(directory: Path) -> bool:
    """Whether there are files of it somewhere below; directories come and go."""
    return any(name.endswith(".parquet") for _, _, names in os.walk(directory) for name in names)


@pytest.mark.proves("S4", "S7")
def test_an_archive(broker: ConfiguredBroker, tmp_path: Path) -> None:
    lake, streams = tmp_path / "lake", ("kept.a", "kept.b")

    def records() -> int:
        return len(list(lake.glob("_pandomq/records/*.json")))

    def staged() -> bool:
        return is_being_written(lake / "_pandomq" / "staging")

    for stream in streams:
        ledger.declare_stream(broker.connect, stream)
    words = ("archive", str(lake), "--url", url_of(broker), "--streams", r"kept\..*", "--every", "0.1")
    with job(tmp_path / "job", *words) as archive:
        with ledger.publishing(broker.connect, *streams) as publishers:
            for _ in range(2):
                archive.start()
                archive.wait_for(staged, "a batch that is being written")
                archive.kill()
            before = records()
            archive.start()
            archive.wait_for(lambda: records() > before + 1, "records")
            archive.kill()
        archive.start("--once")
        summary = archive.wait()
        truth = {one.stream: ledger.read_stream(broker.connect, one.stream, one.confirmed) for one in publishers}
        assert archived(lake) == {stream: list(enumerate(rows)) for stream, rows in truth.items()}
        assert summary["facts"]["rows in the lake"] == sum(map(len, truth.values()))
        assert "<svg" in archive.report.read_text()


@pytest.mark.proves("S5", "S7")
def test_a_rollup(broker: ConfiguredBroker, tmp_path: Path) -> None:
    some, lake = batches(3, messages=900, spacing_us=120_000), tmp_path / "lake"
    third = -(-len(some) // 3)
    events = sum(map(len, some))

    def steps() -> int:
        return RollupFiles(lake, "/").step.number

    def works() -> bool:
        return is_being_written(lake / "_rollup" / "_inner" / "%2F" / "work")

    ledger.declare_stream(broker.connect, TRACE_STREAM)
    publish_traces(broker, bodies(some[:third]))
    words = ("rollup", str(lake), "--url", url_of(broker), "--every", "0.1", "--lateness", str(LATENESS_S))
    with job(tmp_path / "job", *words) as rollup:
        rollup.start()
        rollup.wait_for(works, "a step that is being written")
        rollup.kill()
        publish_traces(broker, bodies(some[third : 2 * third]))
        before = steps()
        rollup.start()
        rollup.wait_for(lambda: steps() > before, "a step")
        rollup.kill()
        rollup.start()
        publish_traces(broker, bodies(some[2 * third :]))
        rollup.wait_for(lambda: RollupFiles(lake, "/").step.knowledge.account.events == events, "all events")
        rollup.interrupt()
        summary = rollup.wait()
        assert summary["facts"]["events in all"] == events and summary["verdict"].endswith("were added to the rollup")
        account = RollupFiles(lake, "/").step.knowledge.account
        assert account.events == events and not account.late and not account.duplicates and not account.lost
        check(results(lake), some, max(max(batch.time_us) for batch in some) - LATENESS_S * SECOND_US)
        rollup.start("--once")
        assert rollup.wait()["verdict"] == "there were no new events"
    with contextlib.closing(broker.connect()) as connection:
        connection.channel().queue_delete(TRACE_STREAM)


@pytest.mark.proves("S4", "S7")
def test_a_replay(broker: ConfiguredBroker, tmp_path: Path) -> None:
    lake, rows, slice_rows = tmp_path / "lake", 1000, 200
    publish(broker, "again", range(rows))
    ledger.declare_stream(broker.connect, "copy")
    with job(tmp_path / "archive", "archive", str(lake), "--url", url_of(broker), "--streams", "again") as archive:
        archive.start("--once")
        assert archive.wait()["facts"]["rows"] == rows
    words = ("replay", str(lake), "--url", url_of(broker), "--to-stream", "copy", "--name", "r", "--rate", "100")
    with job(tmp_path / "replay", *words) as replay, DataClient(url_of(broker)) as client:

        def published(count: int) -> bool:
            return client.range("copy").end_offset >= count

        replay.start()
        replay.wait_for(lambda: published(slice_rows), "a slice")
        replay.kill()
        replay.start()
        replay.wait_for(lambda: published(2 * slice_rows), "has other settings")
        replay.interrupt()
        assert replay.wait()["verdict"].endswith("are published; the same command with --name r resumes it")
        replay.start()
        assert replay.wait()["facts"]["rows in all"] == rows
    assert ledger.read_stream(broker.connect, "copy", rows) == [b"%d" % number for number in range(rows)]


@pytest.mark.proves("S7")
def test_a_campaign(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    words = ("simulate", "--seeds", f"1..{SEEDS}", "--nodes", "3", "--log", "--notes", str(notes))
    with job(tmp_path / "job", *words) as campaign:
        campaign.start()
        campaign.wait_for(lambda: notes.exists() and notes.read_bytes().count(b"\n") > 10, "worlds that have ended")
        campaign.kill()
        noted = notes.read_bytes().count(b"\n") - 1
        campaign.start()
        facts = campaign.wait()["facts"]
        assert facts["schedules"] == SEEDS and facts["schedules that were noted"] == noted
        lines = notes.read_text().splitlines()
        assert len(lines) == len(set(lines)) == SEEDS + 1
