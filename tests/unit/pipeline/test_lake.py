"""A lake counts what its records name: a step is there as a whole or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from pandomq.pipeline.lake import Lake, LakeFault, LakeRecord
from pandomq.pipeline.lake_records import decode
from pandomq.pipeline.rollup.steps import RollupFiles

DAY = "date=2026-11-16"


def stage(lake: Lake, offsets: range, stream: str = "orders", vhost: str = "%2F") -> None:
    directory = lake.staging / f"vhost={vhost}" / f"stream={stream}" / DAY
    directory.mkdir(parents=True)
    times = [datetime.fromtimestamp(1_800_000_000 + at, UTC) for at in offsets]
    columns = {
        "offset": pyarrow.array(offsets, pyarrow.int64()),
        "time": pyarrow.array(times, pyarrow.timestamp("us", "UTC")),
    }
    parquet.write_table(pyarrow.table(columns), directory / "part-0000.parquet")


def offsets_of(lake: Lake) -> list[int]:
    return [at for file in lake.files() for at in parquet.read_table(lake.directory / file.path)["offset"].to_pylist()]


def test_a_step(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.writing():
        stage(lake, range(5, 9))
        lake.take_in(0)
    (file,) = lake.files()
    assert (file.vhost, file.stream, file.date, file.rows) == ("/", "orders", "2026-11-16", 4)
    assert (file.first_offset, file.last_offset) == (5, 8)
    assert (file.first_time_us, file.last_time_us) == (1_800_000_005_000_000, 1_800_000_008_000_000)
    again = Lake.existing(tmp_path / "lake")
    assert again.files() == [file]
    assert again.record_of(0) == lake.records[0] and again.record_of(1) is None


def test_files_left_by_a_crash_are_not_counted_and_are_removed(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.writing():
        stage(lake, range(4))
        lake.take_in(0)
        stage(lake, range(4, 8))
        # The files were moved, and the record was not written.
        moved = next(lake.staging.rglob("*.parquet"))
        stray = tmp_path / "lake" / "vhost=%2F" / "stream=orders" / DAY / "00000001-0.parquet"
        moved.replace(stray)
    again = Lake(tmp_path / "lake")
    assert offsets_of(again) == [0, 1, 2, 3]
    with again.writing():
        assert not stray.exists()
        stage(again, range(4, 8))
        again.take_in(1)
    assert offsets_of(again) == list(range(8))


def test_a_step_can_replace_files_by_others(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.writing():
        for batch in range(3):
            stage(lake, range(batch * 2, batch * 2 + 2))
            lake.take_in(batch)
        old = lake.files()
        stage(lake, range(6))
        lake.take_in(None, old)
    assert [file.rows for file in lake.files()] == [6]
    assert Lake(tmp_path / "lake").files() == lake.files()
    assert not any((lake.directory / file.path).exists() for file in old)


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    other = Lake(tmp_path / "lake").writing()
    with (
        Lake(tmp_path / "lake").writing(),
        pytest.raises(LakeFault, match="another process writes"),
    ):
        other.__enter__()
    with Lake(tmp_path / "lake").writing():
        pass


def test_a_directory_with_something_else(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(LakeFault, match="is not a lake, but not empty"):
        Lake(tmp_path)
    with pytest.raises(LakeFault, match="contains no lake"):
        Lake.existing(tmp_path)


def test_a_place_that_cannot_become_a_lake(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    for make in (Lake, partial(RollupFiles, vhost="/")):
        with pytest.raises(LakeFault, match=r"letter\.txt is not a directory"):
            make(tmp_path / "letter.txt")
        below = make(tmp_path / "letter.txt" / "lake").writing()
        with pytest.raises(LakeFault, match=r"cannot create a lake in .*: Not a directory"):
            below.__enter__()


def test_files_of_a_killed_writer_that_goes_on_are_invisible(tmp_path: Path) -> None:
    """Its executors may not know yet."""
    killed, lake = Lake(tmp_path / "lake"), Lake(tmp_path / "lake")
    with lake.writing():
        stage(lake, range(4))
        stage(killed, range(4))
        lake.take_in(0)
        assert offsets_of(lake) == [0, 1, 2, 3]
        stage(lake, range(4, 8))
        lake.take_in(1)
    assert offsets_of(Lake(tmp_path / "lake")) == list(range(8))
    with Lake(tmp_path / "lake").writing():
        assert not killed.staging.exists()


@pytest.mark.parametrize("text", ["", "{}", '{"version": 9, "number": 0, "batch": 0, "adds": [], "removes": []}'])
def test_a_record_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    with Lake(tmp_path / "lake").writing():
        pass
    (tmp_path / "lake" / "_pandomq" / "records" / "00000000.json").write_text(text)
    with pytest.raises(LakeFault, match=r"00000000\.json"):
        Lake(tmp_path / "lake")


def test_a_reader_sees_all_records_while_they_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pandomq.pipeline.lake.RECORDS_MAX", 2)
    lake = Lake(tmp_path / "lake")

    def decode_late(path: Path) -> LakeRecord:
        monkeypatch.setattr("pandomq.pipeline.lake.decode", decode)
        stage(lake, range(8, 12))
        lake.take_in(2)
        return decode(path)

    with lake.writing():
        for batch in range(2):
            stage(lake, range(batch * 4, batch * 4 + 4))
            lake.take_in(batch)
        monkeypatch.setattr("pandomq.pipeline.lake.decode", decode_late)
        assert offsets_of(Lake(tmp_path / "lake")) == list(range(12))
    assert [path.name for path in (tmp_path / "lake" / "_pandomq" / "records").iterdir()] == ["00000003.json"]
