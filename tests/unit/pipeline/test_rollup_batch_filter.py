"""Which batches count, how far time has come, and what is on disk when a step is cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from pandomq.pipeline.lake import Lake, LakeFault
from pandomq.pipeline.rollup.batch_filter import (
    AHEAD_MAX_US,
    BatchHead,
    Decision,
    Knowledge,
    RollupCounts,
    Story,
    decide,
    head_of,
    with_late,
)
from pandomq.pipeline.rollup.steps import RollupFiles, RollupStep
from pandomq.trace_form import BadTrace, cluster_event, decode_events
from tests.support.traces import BEGIN_US, batch_of, batches, bodies

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US
LATENESS_US = 30 * SECOND_US


def head(offset: int, last_s: float = 0.0, number: int | None = None, **fields: object) -> BatchHead:
    last_us = BEGIN_US + round(last_s * SECOND_US)
    found = BatchHead(
        offset,
        last_us,
        offset.to_bytes(8, "big"),
        "b1",
        1,
        offset if number is None else number,
        events=10,
        first_us=last_us - SECOND_US,
        last_us=last_us,
    )
    return found._replace(**fields)  # type: ignore[arg-type]


def decided(heads: list[BatchHead], before: Knowledge = Knowledge()) -> Decision:  # noqa: B008
    return decide(heads, before, LATENESS_US)


def test_the_head_of_a_batch() -> None:
    batch = batches(1, 50, 1000)[0]
    batch.add(cluster_event(BEGIN_US + 5, "elected", {"root": "b1"}))
    body = bodies([batch])[0]
    found = head_of(7, BEGIN_US + 99, body)
    assert (found.offset, found.appended_us, found.broker, found.term, found.number) == (7, BEGIN_US + 99, "b1", 3, 0)
    assert found.events == len(batch) - 1
    assert (found.first_us, found.last_us) == (min(batch.time_us), max(batch.time_us))
    assert json.loads(found.stories) == [[BEGIN_US + 5, '{"event":"elected","root":"b1"}']]
    assert found.identity == head_of(8, 0, body).identity != head_of(8, 0, bodies([batch_of([])])[0]).identity
    assert head_of(1, 5, body[:-1]).events == head_of(1, 5, b"").events == -1
    assert head_of(1, 5, bodies([batch_of([])])[0])[6:] == (0, 0, 5, 5, "[]")


def test_a_batch_with_places_in_no_table_cannot_be_read() -> None:
    def spoilt(column: str, value: int) -> BatchHead:
        batch = batches(1, 5, 1000)[0]
        batch.add(cluster_event(BEGIN_US, "elected", {}))
        getattr(batch, column)[-1] = value
        body = bodies([batch])[0]
        with pytest.raises(BadTrace):
            decode_events(body)
        return head_of(1, BEGIN_US, body)

    wrong = {"queue": 9, "routing": 900, "consumer": 99, "kind": 200, "reason": 77, "sequence": 1}
    assert {spoilt(column, value).events for column, value in wrong.items()} == {-1}
    assert head_of(1, 5, bodies([batch_of([], sample=0.0)])[0]).events == -1


def test_a_batch_that_comes_again_counts_once() -> None:
    first = decided([head(2), head(1), head(3, identity=head(1).identity)])
    assert first.skipped == {3}
    again = decided([head(5, identity=head(2).identity), head(6)], first.knowledge)
    assert again.skipped == {5}
    assert again.knowledge.account.duplicates == 2 and again.knowledge.account.batches == 3


def test_batches_are_forgotten_when_none_of_their_events_can_count() -> None:
    knowledge = decided([head(1)]).knowledge
    assert len(knowledge.identities) == 1
    later = decided([head(2, last_s=2 * 3600)], knowledge).knowledge
    # Even the longest window of the first is closed: if it comes again all of it is late.
    assert list(later.identities.values()) == [head(2).identity]
    assert max(start + HOUR_US for start in knowledge.identities) <= later.watermark_us


def test_malformed_and_impossible_batches_are_left_out() -> None:
    ahead = head(2, last_us=BEGIN_US + AHEAD_MAX_US + 1)
    decision = decided([head(1, events=-1), ahead, head(3, first_us=-5), head(4)])
    assert decision.skipped == {1, 2, 3}
    assert decision.knowledge.account.malformed == 3 and decision.knowledge.account.events == 10


def test_missing_numbers_are_counted_for_each_broker_and_term() -> None:
    heads = [
        head(1, number=4),
        head(2, number=7),
        head(3, number=0, broker="b2"),
        head(4, number=8),
        head(5, number=2, broker="b2"),
        head(6, number=90, term=2),
        head(7, number=0, term=2),
    ]
    first = decided(heads)
    assert first.knowledge.account.lost == 2 + 1
    assert decided([head(8, number=3, term=2)], first.knowledge).knowledge.account.lost == 3 + 2


def test_the_watermark_follows_the_newest_event_and_never_falls() -> None:
    first = decided([head(1, last_s=100), head(2, last_s=50)]).knowledge
    assert first.watermark_us == BEGIN_US + 70 * SECOND_US
    assert decided([head(3, last_s=80)], first).knowledge.watermark_us == first.watermark_us
    assert decided([], first).knowledge == first
    # A clock that is ahead closes nothing.
    ahead = head(4, last_s=90, last_us=BEGIN_US + 1000 * SECOND_US)
    assert decided([ahead], first).knowledge.watermark_us == first.watermark_us


def test_late_events_are_added_to_the_account() -> None:
    knowledge = with_late(with_late(Knowledge(), [(10, 5)]), [(10, 2), (60, 1)])
    assert knowledge.account == RollupCounts(late={10: 7, 60: 1})


def stage(files: RollupFiles, number: int) -> None:
    """Writes the files that Spark writes before a step is decided."""
    table = pa.table({"a": [number]})
    for directory in (files.staging / "window=10s" / "date=2026-11-16", files.still_open):
        directory.mkdir(parents=True)
        parquet.write_table(table, directory / "part-0.parquet")


def test_a_step_counts_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RollupFiles(tmp_path / "lake", "/a b")
    story = Story(5, "b1", "{}")
    with files.writing():
        files.checkpoint.mkdir()
        stage(files, 0)
        files.decide(RollupStep(0, 0), [story])
        stage(files, 1)

        def cut(*_: object) -> None:
            raise RuntimeError("the files are in their places, and the step is not decided")

        with monkeypatch.context() as patch:
            patch.setattr("pandomq.pipeline.rollup.steps.msgspec.json.encode", cut)
            with pytest.raises(RuntimeError):
                files.decide(RollupStep(1, 1), [])
    found = RollupFiles(tmp_path / "lake", "/a b")
    assert found.step.number == 0 and found.stories() == [story]
    assert [path.name for path in found.results("10s")] == ["00000000-0.parquet"]
    assert len(list((tmp_path / "lake").rglob("00000001-0.parquet"))) == 1
    with found.writing():
        assert list((tmp_path / "lake").rglob("00000001*")) == []
        stage(found, 1)
        found.decide(RollupStep(1, 1), [])
        assert [path.name for path in found.results("10s")] == ["00000000-0.parquet", "00000001-0.parquet"]
        assert found.open_sums().is_dir() and not found.open_sums(0).exists()
    found.checkpoint.rmdir()
    with pytest.raises(LakeFault, match="checkpoint is missing"), found.writing():
        pass


def test_one_at_a_time_and_beside_an_archive(tmp_path: Path) -> None:
    files = RollupFiles(tmp_path, "/")
    second = pytest.raises(LakeFault, match="another process rolls up")
    with Lake(tmp_path).writing(), files.writing(), RollupFiles(tmp_path, "other").writing(), second, files.writing():
        pass
    assert Lake(tmp_path).files() == []


def test_a_directory_that_is_no_lake_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("private")
    with pytest.raises(LakeFault, match="is not a lake, but not empty"):
        RollupFiles(tmp_path, "/")


@pytest.mark.parametrize("content", ["{", '{"version": 99}', '{"number": "x"}'])
def test_a_step_that_cannot_be_read_is_reported(tmp_path: Path, content: str) -> None:
    with RollupFiles(tmp_path, "/").writing():
        pass
    (tmp_path / "_rollup/_inner/%2F/step.json").write_text(content)
    with pytest.raises(LakeFault, match=r"step\.json"):
        RollupFiles(tmp_path, "/")
