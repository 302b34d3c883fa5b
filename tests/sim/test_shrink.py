"""A broken world is shrunk: the smaller one breaks the same promise, and a command replays it."""

from __future__ import annotations

import json
import shlex
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import msgspec
import pytest
from typer.testing import CliRunner

from pandomq.cli.main import app
from pandomq.sim.campaigns.campaign import Job, run_job, seeds_from
from pandomq.sim.campaigns.outcome import WorldOutcome
from pandomq.sim.campaigns.reduction import Reduction, Strikes, WrongReduction, parse_reduction
from pandomq.sim.campaigns.shrink import Shrunk, complements, shrink, signature
from tests.sim.planted.hunt import job_with
from tools import planted_bugs

SEEDS_MAX = 60
RUNS_MAX = 60
WHOLE = Reduction(("a", "b", "c", "d", "e"), ("n1", "n2", "n3"), tuple(map(str, range(1, 41))), ("x", "y"), 900)


# Worlds with planted bugs.


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", ["ack-not-logged", pytest.param("takeover-trusts", marks=pytest.mark.slow), "lease-ignored"]
)
def test_a_planted_bug_is_left_with_next_to_nothing_around_it(name: str) -> None:
    jobs = (job_with(name, seed) for seed in islice(seeds_from(600), SEEDS_MAX))
    # From a world without strikes, such as those of plots, little can be left out.
    job, broken = next((job, one) for job in jobs if (one := run_job(job)).broken and one.course.strikes)
    shrunk = shrink(job, broken, runs_max=RUNS_MAX)
    assert signature(shrunk.outcome) == signature(broken)
    assert _size(shrunk.outcome.course) < _size(broken.course)
    assert run_job(_typed(shrunk)) == shrunk.outcome
    assert shrunk.outcome.story


def _size(course: Reduction) -> tuple[int, int, int, int]:
    assert course.clients is not None and course.machines is not None and course.strikes is not None
    return len(course.clients) + len(course.strikes), len(course.machines), course.faults_ms or 0, 0


def _typed(shrunk: Shrunk) -> Job:
    """Returns the job that the printed command runs."""
    words = shlex.split(shrunk.job.command(shrunk.outcome.seed))
    options = dict(pairwise(words))
    keep = parse_reduction(word for option, word in pairwise(words) if option == "--keep")
    job = job_with(options["sim"], int(options["--seed"]), int(options["--nodes"]))
    return msgspec.structs.replace(job, keep=keep)


# Worlds that hold their promises.


@pytest.mark.parametrize(("nodes", "log"), [(1, False), (3, False), (5, True)])
@pytest.mark.parametrize(
    "seed", [900, pytest.param(903, marks=pytest.mark.slow), pytest.param(904, marks=pytest.mark.slow)]
)
def test_a_world_that_holds_its_promises_holds_them_with_less_in_it(nodes: int, log: bool, seed: int) -> None:
    # Clients of a feature rely on each other: features are left out whole.
    job = Job(seed, nodes, log, plot="", keep=Reduction(features=()))
    whole = run_job(job)
    random = Random(seed)
    for _ in range(2):
        keep = msgspec.structs.replace(_part(random, whole.course), features=())
        outcome = run_job(msgspec.structs.replace(job, keep=keep))
        assert not outcome.broken, f"{keep.words()}\n" + "\n".join(outcome.story)
        assert outcome.course.clients == keep.clients
        assert outcome.course.machines == keep.machines


def test_only_the_time_of_a_plot_is_left_out() -> None:
    job = Job(3, 3, log=True, plot="deaf backup")
    whole = run_job(job)
    length_ms = (whole.course.faults_ms or 0) // 2
    less = run_job(msgspec.structs.replace(job, keep=Reduction((), ("n1",), (), (), length_ms)))
    assert not less.broken
    assert less.course == msgspec.structs.replace(whole.course, faults_ms=length_ms)


def _part(random: Random, course: Reduction) -> Reduction:
    assert course.clients is not None and course.machines is not None and course.strikes is not None

    def some(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if random.random() < 0.6)

    machines = (*course.machines[:2], *some(course.machines[2:]))
    return Reduction(some(course.clients), machines, some(course.strikes), faults_ms=course.faults_ms)


@pytest.mark.parametrize(("nodes", "log"), [(1, False), (3, False), (3, True)])
def test_keeping_everything_changes_nothing(nodes: int, log: bool) -> None:
    whole = run_job(Job(901, nodes, log))
    assert run_job(Job(901, nodes, log, keep=whole.course)) == whole


def test_strikes_stay_the_same_without_clients_and_without_each_other() -> None:
    whole = run_job(Job(905, 3))
    assert whole.course.strikes is not None
    kinds = dict(zip(whole.course.strikes, whole.strikes, strict=True))
    kept = tuple(name for name in kinds if name.isdecimal())[1::2]
    less = run_job(Job(905, 3, keep=Reduction(clients=(), strikes=kept)))
    assert kept
    assert less.course.strikes == kept
    assert less.strikes == tuple(kinds[name] for name in kept)


# The search.


class ToyWorld:
    """Breaks if these take part, and faults last this long."""

    def __init__(self, needed: Reduction) -> None:
        self.needed = needed
        self.runs = 0

    def run(self, job: Job) -> WorldOutcome:
        self.runs += 1
        needed, course = self.needed, _part_of_whole(job.keep)
        breaks = all(
            set(wanted or ()) <= set(found or ())
            for wanted, found in (
                (needed.clients, course.clients),
                (needed.machines, course.machines),
                (needed.strikes, course.strikes),
                (needed.features, course.features),
            )
        ) and (course.faults_ms or 0) >= (needed.faults_ms or 0)
        broken = f"loss: message {self.runs} is gone" if breaks else "progress: it takes too long"
        return WorldOutcome(job.seed, "", 0, 0, 0, broken=broken, promise=broken.partition(":")[0], course=course)


def _part_of_whole(keep: Reduction) -> Reduction:
    return Reduction(
        WHOLE.clients if keep.clients is None else keep.clients,
        WHOLE.machines if keep.machines is None else keep.machines,
        WHOLE.strikes if keep.strikes is None else keep.strikes,
        WHOLE.features if keep.features is None else keep.features,
        keep.length_ms(WHOLE.faults_ms or 0),
    )


@pytest.mark.parametrize("seed", range(30))
def test_only_the_needed_parts_are_left(seed: int) -> None:
    random = Random(seed)
    needed = Reduction(
        tuple(name for name in WHOLE.clients or () if random.random() < 0.3),
        ("n1", "n2", *random.sample(("n3",), random.randint(0, 1))),
        tuple(name for name in WHOLE.strikes or () if random.random() < random.choice((0.0, 0.1, 0.5))),
        random.choice(((), ("x",), ("y",))),
        random.randint(0, 900),
    )
    toy = ToyWorld(needed)
    shrunk = shrink(Job(seed), toy.run(Job(seed)), run=toy.run)
    left = shrunk.outcome.course
    assert shrunk.complete
    assert (set(left.clients or ()), set(left.strikes or ())) == (set(needed.clients or ()), set(needed.strikes or ()))
    assert set(left.machines or ()) == set(needed.machines or ())
    assert left.features == needed.features
    assert (needed.faults_ms or 0) <= (left.faults_ms or 0) <= (needed.faults_ms or 0) * 1.4 + 20
    assert toy.run(shrunk.job).promise == "loss"


def test_the_search_has_limits() -> None:
    toy = ToyWorld(Reduction(strikes=("3", "39"), faults_ms=500))
    broken = toy.run(Job(1))
    shrunk = shrink(Job(1), broken, run=toy.run, runs_max=5)
    assert (shrunk.runs, shrunk.complete) == (5, False)
    assert toy.runs == 6
    shrunk = shrink(Job(1), broken, run=toy.run, seconds_max=0)
    assert (shrunk.runs, shrunk.complete) == (0, False)
    assert shrunk.job == Job(1)


def test_each_part_is_left_out_once() -> None:
    assert complements("abcde", 2) == [("c", "d", "e"), ("a", "b")]
    assert complements("abc", 3) == [("b", "c"), ("a", "c"), ("a", "b")]


# Words on the command line.


@pytest.mark.parametrize(
    "keep",
    [
        Reduction(),
        Reduction((), (), (), (), 0),
        Reduction(("publisher-1", "configurer"), ("n1", "s2"), ("1", "3", "4", "5", "restart-2"), ("rights",), 420),
        WHOLE,
    ],
)
def test_a_reduction_is_typed_and_read_back(keep: Reduction) -> None:
    assert parse_reduction(keep.words()) == keep


def test_numbers_that_follow_each_other_are_typed_as_a_range() -> None:
    assert WHOLE.words()[3] == "strikes=1-40"


@pytest.mark.parametrize(
    "words", [["clients"], ["brokers=n1"], ["faults-ms=soon"], ["clients=a", "clients=b"], ["strikes=1-99999999"]]
)
def test_malformed_reductions_are_refused(words: list[str]) -> None:
    with pytest.raises(WrongReduction):
        parse_reduction(words)


def test_strikes_are_numbered_whether_they_take_place_or_not() -> None:
    strikes = Strikes(Reduction(strikes=("2", "restart-1")))
    assert [strikes.admits("kill"), strikes.admits("power"), strikes.admits("crash at start", "restart")] == [
        False,
        True,
        True,
    ]
    assert (strikes.names, strikes.kinds) == (["2", "restart-1"], ["power", "crash at start"])
    assert (strikes.count(), strikes.count("restart")) == (2, 1)


# The behaviour of `pandomq sim`.


def test_the_command_shows_what_is_left_and_records_it(tmp_path: Path) -> None:
    record = tmp_path / "campaigns.jsonl"
    arguments = ["sim", "ack-before-sync", "--nodes", "0", "--seeds", "600..601", "--jobs", "1"]
    result = CliRunner().invoke(planted_bugs.app, [*arguments, "--record", str(record)])
    assert result.exit_code == 1
    line = json.loads(record.read_text())
    (seed, kept), *others = line["shrunk"].items()
    assert not others
    assert seed in line["broken"]
    keep = " ".join(f"--keep {word}" for word in kept.split())
    command = f"python -m tools.planted_bugs sim ack-before-sync --nodes 0 --seed {seed} {keep} --explain"
    assert f"seed {seed}, shrunk to" in result.output
    assert f"{command} replays it" in result.output
    replayed = CliRunner().invoke(planted_bugs.app, shlex.split(command)[3:])
    assert replayed.exit_code == 1
    assert "BROKEN" in replayed.output


def test_the_command_does_not_shrink_with_no_shrink(tmp_path: Path) -> None:
    record = tmp_path / "campaigns.jsonl"
    arguments = ["sim", "ack-before-sync", "--nodes", "0", "--seeds", "600..600", "--jobs", "1"]
    result = CliRunner().invoke(planted_bugs.app, [*arguments, "--no-shrink", "--record", str(record)])
    assert result.exit_code == 1
    assert "shrunk" not in result.output
    assert "shrunk" not in json.loads(record.read_text())


@pytest.mark.parametrize("arguments", [["--keep", "clients=a"], ["--seed", "1", "--keep", "friends=a"]])
def test_the_command_refuses_parts_that_it_cannot_keep(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, ["sim", *arguments])
    assert result.exit_code != 0
