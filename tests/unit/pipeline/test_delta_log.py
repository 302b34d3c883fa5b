"""A lake that is a Delta table: the table has each of the lake's steps once, whatever was interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from pandomq.pipeline import lake as lakes
from pandomq.pipeline.delta_log import APPLICATION, DeltaLog
from pandomq.pipeline.lake import Lake, LakeFault
from tests.unit.pipeline.test_lake import stage


def add(lake: Lake, batch: int, offsets: range, **names: str) -> None:
    stage(lake, offsets, **names)
    lake.take_in(batch)


def seen(directory: Path) -> list[tuple[str, str, int]]:
    """As a reader of Delta tables sees it."""
    table = DeltaTable(directory).to_pyarrow_table(columns=["vhost", "stream", "offset"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.proves("S4")
def test_the_table_has_the_files_of_the_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", delta=True)
    with lake.writing():
        add(lake, 0, range(3))
        add(lake, 1, range(2), stream="a b%2F", vhost="%2F")
        lake.take_in(2)
        add(lake, 3, range(3, 5))
    assert seen(lake.directory) == [("/", "a b/", 0), ("/", "a b/", 1), *(("/", "orders", at) for at in range(5))]
    table = DeltaTable(lake.directory)
    assert table.transaction_version(APPLICATION) == 3 and lake.delta is not None and lake.delta.version == 2
    assert table.metadata().partition_columns == ["vhost", "stream", "date"]
    found = table.to_pyarrow_table(filters=[("stream", "=", "orders"), ("offset", ">=", 4)])
    assert found["offset"].to_pylist() == [4]
    # A later process need not name its type.
    with Lake(lake.directory).writing():
        pass
    assert Lake(lake.directory).delta is not None


def test_compaction_is_one_transaction_that_changes_no_rows(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", delta=True)
    with lake.writing():
        for batch in range(3):
            add(lake, batch, range(batch * 2, batch * 2 + 2))
        stage(lake, range(6))
        lake.take_in(None, lake.files())
    assert [at for *_, at in seen(lake.directory)] == list(range(6))
    assert len(DeltaTable(lake.directory).file_uris()) == 1
    last = json.loads(f"[{','.join(sorted((lake.directory / '_delta_log').glob('*.json'))[-1].read_text().split())}]")
    changes = [action[kind]["dataChange"] for action in last for kind in ("add", "remove") if kind in action]
    assert changes == [False] * 4


@pytest.mark.proves("S4")
def test_files_that_a_crash_kept_from_the_table_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cut(Exception):
        pass

    def cut(*_: Any) -> None:
        raise Cut

    directory = tmp_path / "lake"
    for batch in range(4):
        lake = Lake(directory, delta=True)
        with lake.writing():
            # The next writer has added everything that was decided before.
            assert batch == 0 or [at for *_, at in seen(directory)] == list(range(2 * batch))
            with monkeypatch.context() as patch:
                patch.setattr(DeltaLog, "_create" if batch == 0 else "_commit", cut)
                with pytest.raises(Cut):
                    add(lake, batch, range(2 * batch, 2 * batch + 2))
    with Lake(directory).writing():
        pass
    assert [at for *_, at in seen(directory)] == list(range(8))


def test_a_lake_of_parquet_becomes_a_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.writing():
        for batch in range(3):
            add(lake, batch, range(batch * 2, batch * 2 + 2))
        stage(lake, range(4))
        lake.take_in(None, lake.files()[:2])
    assert lake.delta is None
    with Lake(tmp_path / "lake", delta=True).writing():
        pass
    assert [at for *_, at in seen(lake.directory)] == list(range(6))


def test_records_that_are_put_together_are_no_news_for_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakes, "RECORDS_MAX", 3)
    lake = Lake(tmp_path / "lake", delta=True)
    with lake.writing():
        for batch in range(9):
            add(lake, batch, range(batch, batch + 1))
    assert [at for *_, at in seen(lake.directory)] == list(range(9))
    assert len(list((lake.directory / "_pandomq" / "records").glob("*.json"))) <= 4
    again = Lake(lake.directory)
    assert again.files() == lake.files()
    assert again.record_of(8) is not None and again.record_of(9) is None


def test_a_table_of_another_lake_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", delta=True)
    with lake.writing():
        add(lake, 0, range(2))
    text = next((lake.directory / "_delta_log").glob("*.json"))
    text.write_text("\n".join(line for line in text.read_text().splitlines() if '"txn"' not in line))
    with pytest.raises(LakeFault, match="of another lake"), Lake(lake.directory).writing():
        pass


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LakeFault, match=r"pip install 'pandomq\[delta\]'"):
        Lake(tmp_path / "lake", delta=True)
