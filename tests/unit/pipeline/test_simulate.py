"""The report of worlds that executors ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq.pipeline.simulate import MixedVersions, summarize
from pandomq.pipeline.simulate_notes import OtherCampaign, SeedNotes, WorldResult
from pandomq.sim.campaigns.campaign import Job
from pandomq.sim.campaigns.outcome import WorldOutcome


def world(seed: int, broken: str = "", version: str = "1, fast kernel") -> WorldResult:
    outcome = WorldOutcome(
        seed, "hash", 100, 10, 2, {"kill": 3, "power": 1}, broken, "order" if broken else "", ("a line",)
    )
    return WorldResult(outcome, 70, version)


def test_the_summary_of_worlds_without_violations_is_good() -> None:
    summary = summarize([world(2), world(1)], Job(0, 3), 4.0)
    assert summary.good and summary.verdict == "no guarantee was violated"
    assert summary.facts["schedules"] == 2 and summary.facts["seeds"] == "1..2"
    assert summary.facts["schedules a second"] == 0.5
    assert summary.tables[0].rows == [("kill", 6), ("power", 2)]


def test_a_broken_promise_is_named_with_the_command_that_shows_it() -> None:
    summary = summarize([world(1), world(7, "5 came before 4")], Job(0, 3), 1.0)
    assert not summary.good and summary.verdict == "1 of 2 schedules violated a guarantee"
    assert summary.tables[1].rows == [(7, "order", "5 came before 4", "pandomq sim --nodes 3 --seed 7 --explain")]
    assert summary.tables[2].title == "The story of seed 7"


def test_executors_with_different_code() -> None:
    with pytest.raises(MixedVersions, match="1, fast kernel; 2, fast kernel"):
        summarize([world(1), world(2, version="2, fast kernel")], Job(0), 1.0)


def test_a_campaign_that_was_noted_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    with SeedNotes(path, Job(5, 3), "1") as notes:
        assert notes.worlds == {}
        notes.keep(world(1))
        notes.keep(world(2, "5 came before 4"))
    whole = path.read_bytes()
    # Its writer was killed in the middle of a line.
    path.write_bytes(whole + b'{"outcome":{"seed":3')
    with SeedNotes(path, Job(9, 3), "1") as notes:
        assert notes.worlds == {1: world(1), 2: world(2, "5 came before 4")}
        notes.keep(world(4))
    with SeedNotes(path, Job(0, 3), "1") as notes:
        assert sorted(notes.worlds) == [1, 2, 4]
    summary = summarize([*notes.worlds.values(), world(5)], Job(0, 3), 2.0, before=3)
    assert (summary.facts["schedules that were noted"], summary.facts["schedules a second"]) == (3, 0.5)


@pytest.mark.parametrize(("job", "version"), [(Job(0, 5), "1"), (Job(0, 3), "2")])
def test_notes_of_another_campaign(tmp_path: Path, job: Job, version: str) -> None:
    path = tmp_path / "notes"
    with SeedNotes(path, Job(0, 3), "1") as notes:
        notes.keep(world(1))
    before = path.read_bytes()
    with pytest.raises(OtherCampaign, match="choose another file"):
        SeedNotes(path, job, version)
    assert path.read_bytes() == before
    path.write_text("dear diary\n")
    with pytest.raises(OtherCampaign, match="not a progress file"):
        SeedNotes(path, job, version)
    assert path.read_text() == "dear diary\n"


def test_without_a_file_nothing_is_noted() -> None:
    with SeedNotes(None, Job(0), "1") as notes:
        notes.keep(world(1))
        assert notes.worlds == {}
