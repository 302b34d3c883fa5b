"""Shrinks a broken world: leaves out clients, strikes, machines and time, as long as the same promise is broken.

This is delta debugging (Zeller's ddmin): large parts are left out first, then smaller ones, until no single client,
strike or machine can be left out. The result is the smallest world that was found, not the smallest that exists. Each
attempt runs a whole world, so the number of attempts and the time are limited.

A smaller world counts as broken in the same way if the same promise is broken with the same words, up to the first
number in them. So the search does not replace a loss by a stall.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from pandomq.sim.campaigns.campaign import Job, run_job
from pandomq.sim.campaigns.outcome import WorldOutcome
from pandomq.sim.campaigns.reduction import Reduction

RUNS_MAX: Final = 400
SECONDS_MAX: Final = 60.0
LENGTH_SHARE: Final = 8
"""The time of faults is shortened until a step would save less than this part of it."""
LENGTH_STEP_MS: Final = 10
"""The smallest step by which the time of faults is shortened."""

_WORDS: Final = re.compile(r"\D*")


class Shrunk(msgspec.Struct, frozen=True):
    job: Job
    """The job of the smaller world: `run_job` replays it."""
    outcome: WorldOutcome
    """The outcome of the smaller world, with its story."""
    runs: int
    whole: Reduction
    """Everything that took part in the world before."""
    complete: bool
    """Whether no further part can be left out; otherwise the limit of runs or of time was reached before that was
    known."""

    def summary(self) -> str:
        """Describes how much is left."""
        left, whole = self.outcome.course, self.whole
        parts = [
            f"{_count(left.clients)} of {_count(whole.clients)} clients",
            f"{_count(left.strikes)} of {_count(whole.strikes)} fault strikes",
            f"{_count(left.machines)} of {_count(whole.machines)} machines",
            f"{left.faults_ms} of {whole.faults_ms} ms of faults",
        ]
        end = "nothing more can be left out" if self.complete else "the limit was reached before all was tried"
        return f"{', '.join(parts)} ({self.runs} runs; {end})"


def _count(names: tuple[str, ...] | None) -> int:
    return len(names or ())


def signature(outcome: WorldOutcome) -> tuple[str, str]:
    """Returns what two worlds that are broken in the same way have in common."""
    words = _WORDS.match(outcome.broken)
    assert words is not None
    return outcome.promise, words[0]


def shrink(
    job: Job,
    broken: WorldOutcome,
    *,
    runs_max: int = RUNS_MAX,
    seconds_max: float = SECONDS_MAX,
    on_run: Callable[[int, Reduction], None] = lambda runs, best: None,
    run: Callable[[Job], WorldOutcome] = run_job,
) -> Shrunk:
    """Shrinks the world of the job, whose outcome is `broken`. `on_run` is called after each attempt, with the smallest
    world so far."""
    assert broken.broken
    return _Shrinking(job, broken, runs_max, time.monotonic() + seconds_max, on_run, run).shrink()


class _Spent(Exception):
    """A limit was reached."""


class _Shrinking:
    def __init__(
        self,
        job: Job,
        broken: WorldOutcome,
        runs_max: int,
        end_s: float,
        on_run: Callable[[int, Reduction], None],
        run: Callable[[Job], WorldOutcome],
    ) -> None:
        self._job = msgspec.structs.replace(job, seed=broken.seed)
        self._wanted = signature(broken)
        self._whole = broken.course
        self._runs_max = runs_max
        self._end_s = end_s
        self._on_run = on_run
        self._run = run
        self._runs = 0
        self._best = broken
        self._failed: set[Reduction] = set()
        """Attempts that did not break the promise."""

    def shrink(self) -> Shrunk:
        complete = True
        try:
            while self._shrink_once():
                pass
        except _Spent:
            complete = False
        job = msgspec.structs.replace(self._job, keep=self._shortest_keep())
        return Shrunk(job, self._best, self._runs, self._whole, complete)

    def _shortest_keep(self) -> Reduction:
        """Returns the reduction of the best world, which names only the differences from the whole world. Strikes that
        did not happen in the best world need not be left out."""
        best, given = self._best.course, self._job.keep
        if best == self._whole:
            return given
        return msgspec.structs.replace(
            best,
            clients=given.clients if best.clients == self._whole.clients else best.clients,
            features=given.features if best.features == self._whole.features else best.features,
            machines=given.machines if best.machines == self._whole.machines else best.machines,
        )

    def _shrink_once(self) -> bool:
        """Returns whether a part could be left out. Clients come first: without them the other attempts take less
        time."""
        before = self._best.course
        self._minimize("features", 0)
        self._minimize("clients", 0)
        self._minimize("strikes", 0)
        self._shorten()
        # The first machine founds the cluster, and faults of the network need two machines.
        self._minimize("machines", 1 if self._job.log else 2)
        return self._best.course != before

    def _attempt(self, **changes: object) -> bool:
        reduction = msgspec.structs.replace(self._best.course, **changes)
        if reduction in self._failed:
            return False
        if self._runs >= self._runs_max or time.monotonic() > self._end_s:
            raise _Spent
        self._runs += 1
        outcome = self._run(msgspec.structs.replace(self._job, keep=reduction))
        # A world may keep a part that the reduction leaves out; then it is no smaller.
        smaller = outcome.course != self._best.course
        same = bool(outcome.broken) and signature(outcome) == self._wanted and smaller
        if same:
            self._best = outcome
        else:
            self._failed.add(reduction)
        self._on_run(self._runs, self._best.course)
        return same

    def _names(self, field: str) -> tuple[str, ...]:
        found: tuple[str, ...] = getattr(self._best.course, field)
        return found

    def _minimize(self, field: str, fixed: int) -> None:
        """Leaves out names until none of them can be left out except the first `fixed` ones. A smaller world may break
        sooner, and then has even fewer names than were requested."""
        head = self._names(field)[:fixed]
        if len(self._names(field)) > fixed and self._attempt(**{field: head}):
            return
        parts = 2
        while len(self._names(field)) - fixed >= 2:
            names = self._names(field)[fixed:]
            parts = min(parts, len(names))
            if any(self._attempt(**{field: (*head, *rest)}) for rest in complements(names, parts)):
                parts = max(parts - 1, 2)
            elif parts == len(names):
                return
            else:
                parts *= 2

    def _shorten(self) -> None:
        too_short_ms = 0
        while True:
            length_ms = self._best.course.faults_ms or 0
            middle_ms = (too_short_ms + length_ms) // 2
            if length_ms - middle_ms < max(LENGTH_STEP_MS, length_ms // LENGTH_SHARE):
                return
            if not self._attempt(faults_ms=middle_ms):
                too_short_ms = middle_ms


def complements(names: Sequence[str], parts: int) -> list[tuple[str, ...]]:
    """Yields the names without the first part, without the second part, and so on."""
    bounds = [len(names) * number // parts for number in range(parts + 1)]
    return [(*names[:start], *names[end:]) for start, end in pairwise(bounds)]
