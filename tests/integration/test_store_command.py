"""`pandomq store`, from a shell or a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pandomq.cli.store import store_app
from pandomq.hard_state import HardState
from pandomq.ids import LogIndex
from pandomq.journal.events import HardStateSaved
from pandomq.journal.segments.segment import Segment
from tests.integration.store_writer import Keeper


def store(*arguments: object) -> Result:
    return CliRunner().invoke(store_app, [str(argument) for argument in arguments])


def store_json(*arguments: object) -> Any:
    return json.loads(store(*arguments, "--json").stdout)


def make(directory: Path, entries: int, *, epoch: int = 0, term: int = 1) -> Keeper:
    keeper = Keeper(directory)
    keeper.journal.save_state(HardState(epoch=epoch, term=term, vote="n1"))
    for _ in range(entries // 20):
        keeper.append(20)
    while keeper.journal.durable_index < keeper.journal.last_index:
        keeper.wait()
    while not any(isinstance(event, HardStateSaved) for event in keeper.events):
        keeper.wait()
    keeper.close()
    return keeper


def flip(file: Path, offset: int) -> None:
    content = bytearray(file.read_bytes())
    content[offset] ^= 4
    file.write_bytes(content)


def place_of(keeper: Keeper, index: int) -> tuple[str, int]:
    segment = keeper.journal._catalogue.find(LogIndex(index))
    assert isinstance(segment, Segment)
    return segment.file, segment.positions[index - segment.first_index]


@pytest.mark.proves("L6")
def test_inspect_names_the_newest_of_several_stores(tmp_path: Path) -> None:
    make(tmp_path / "n1", 100)
    make(tmp_path / "n2", 300)
    make(tmp_path / "n3", 40, epoch=1)
    names = ["n1", "n2", "n3"]
    found = store_json("inspect", *(tmp_path / name for name in names))
    assert [(report["last_index"], report["epoch"], report["newest"]) for report in found] == [
        (100, 0, False),
        (300, 0, False),
        (40, 1, True),
    ]
    two = store("inspect", tmp_path / "n1", tmp_path / "n2")
    assert two.exit_code == 0
    assert f"Newest by (epoch, term, index): {tmp_path / 'n2'}" in two.stdout.replace("\n", "")
    # In a pipe nothing is cut off, and rows are lines.
    rows = [line.split("\t") for line in two.stdout.splitlines()[:3]]
    assert [(row[0], row[-1]) for row in rows] == [
        ("directory", "state"),
        (str(tmp_path / "n1"), ""),
        (str(tmp_path / "n2"), "newest"),
    ]
    assert two.stderr == ""


def test_inspect_works_beside_a_running_broker(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path / "store")
    keeper.append(20)
    while keeper.journal.durable_index < 20:
        keeper.wait()
    (found,) = store_json("inspect", tmp_path)
    assert (found["node_name"], found["last_index"], found["damage"]) == ("n1", 20, None)
    refused = store("verify", tmp_path)
    assert refused.exit_code == 2 and "in use by process" in refused.output
    keeper.close()
    assert store("verify", tmp_path).exit_code == 0


def test_an_empty_directory_and_none(tmp_path: Path) -> None:
    assert store_json("inspect", tmp_path)[0]["new"]
    nothing = store("inspect", tmp_path / "missing")
    assert nothing.exit_code == 2 and "is not a directory" in nothing.output
    assert store("repair", tmp_path).exit_code == 2


@pytest.mark.proves("R21")
def test_verify_names_file_and_offset_and_repair_cuts_there(tmp_path: Path) -> None:
    keeper = make(tmp_path, 600)
    assert store("verify", tmp_path).exit_code == 0
    file, offset = place_of(keeper, 417)
    flip(tmp_path / file, offset + 60)
    bad = store("verify", tmp_path)
    assert bad.exit_code == 1
    words = " ".join(bad.stdout.split())
    assert f"corrupt: {file} at offset {offset}: entry 417" in words
    assert "entries up to 416 are intact; the log continued to 600" in words
    (found,) = store_json("verify", tmp_path)
    assert not found["sound"] and found["damage"]["index"] == 417

    repaired = store_json("repair", tmp_path)
    assert (repaired["cut_from"], repaired["cut_to"], repaired["left"]) == (417, 600, [])
    assert (tmp_path / repaired["aside"]).stat().st_size > 100_000
    assert store("verify", tmp_path).exit_code == 0
    assert "nothing to repair" in store("repair", tmp_path).stdout
    again = Keeper(tmp_path)
    assert again.journal.store_identity.state.doubtful, "in a cluster others may count on what was cut off"
    assert again.journal.last_index == 416
    again.append(20)
    again.close()
    assert repaired["aside"] in store_json("inspect", tmp_path)[0]["aside"]


def test_small_damage_is_repaired(tmp_path: Path) -> None:
    keeper = make(tmp_path, 100)
    file, _ = place_of(keeper, 50)
    flip(tmp_path / file, 4096 + 49 * 32)
    flip(tmp_path / "state", 40)
    assert store("verify", tmp_path).exit_code == 1
    repaired = store("repair", tmp_path)
    assert repaired.exit_code == 0
    words = " ".join(repaired.stdout.split())
    assert "repaired: state at 0: a copy is damaged" in words
    assert "the slot of entry 50" in words
    assert store("verify", tmp_path).exit_code == 0
    assert store_json("inspect", tmp_path)[0]["last_index"] == 100


def test_bench_measures_and_cleans_up(tmp_path: Path) -> None:
    found = store_json("bench", tmp_path, "--total-mib", 16)
    assert found["append_mb_s"] > 0 and found["recovered_bytes"] >= 15 * 2**20
    assert not list(tmp_path.iterdir())
