"""Runs `pandomq pipeline archive`, `compact` and `replay`."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pandomq.cli.failures import RequestRejected, WrongUse
from pandomq.cli.output import say
from pandomq.cli.pipeline.job_options import JobOptions
from pandomq.cli.pipeline.running import asking, finish, insist_on_broker, on_interruption, progress, session_for
from pandomq.pipeline.archive import Archive, ArchiveOptions
from pandomq.pipeline.compaction import compact, groups_of
from pandomq.pipeline.lake import Lake, LakeFault
from pandomq.pipeline.replay import insist_on_known, replay, selected
from pandomq.pipeline.replay_plan import (
    MICROS,
    Pace,
    ReplayPlan,
    Selection,
    draw_up,
    insist_on_same,
    load,
    place_of,
    save,
)

UNROUTABLE: Final = ("fail", "count", "ignore")


@contextmanager
def refusing() -> Iterator[None]:
    """Reports a problem of a lake in one line."""
    try:
        yield
    except LakeFault as fault:
        raise RequestRejected(str(fault)) from fault


def run_archive(job: JobOptions, options: ArchiveOptions, directory: Path, delta: bool) -> None:
    with refusing():
        lake = Lake(directory.resolve(), delta=delta)
    insist_on_broker(options.url)
    with refusing(), session_for("archive", job.master) as session:
        archive = Archive(session, lake, options)
        on_interruption(archive.stop)
        with progress("rows", None) as advance:
            summary = archive.run(advance)
    finish(summary, job)


def run_compact(job: JobOptions, directory: Path) -> None:
    with refusing():
        lake = Lake.existing(directory.resolve())
        total = len(groups_of(lake.files()))
        with session_for("compact", job.master) as session, progress("streams and days", total) as advance:
            summary = compact(session, lake, advance)
    finish(summary, job)


def run_replay(
    job: JobOptions,
    directory: Path,
    target: dict[str, str],
    name: str | None,
    selection: Selection,
    pace: Pace,
) -> None:
    if ("exchange" in target) == ("stream" in target):
        raise WrongUse("give the target of the replay: either --exchange or --to-stream")
    if (rule := target.get("unroutable")) is not None and ("stream" in target or rule not in UNROUTABLE):
        raise WrongUse(
            f"--unroutable {rule!r} is not possible: it needs --exchange, and must be one of {', '.join(UNROUTABLE)}"
        )
    if pace.rate and pace.factor:
        raise WrongUse(f"--rate {pace.rate:g} and --factor {pace.factor:g} cannot be combined: give one of them")
    interrupted = threading.Event()

    def interrupt() -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    with refusing():
        lake = Lake.existing(directory.resolve())
        known = None if name is None else _known(lake, name, selection, pace, target)
        insist_on_broker(target["url"])
        plan = known or draw_up(name or f"replay-{uuid.uuid4().hex[:12]}", lake.files(), selection, pace, target)
        if not plan.files:
            raise LakeFault(
                "no row in the lake matches the selection: widen --streams, the offsets, the times or --where"
            )
        if known is None:
            say(f"this is replay {plan.name}: if it is interrupted, --name {plan.name} resumes it")
        else:
            say(f"resuming replay {plan.name}: {plan.progress}")
        with session_for("replay", job.master) as session, progress("slices", len(plan.slices) - plan.done) as advance:
            on_interruption(interrupt)
            if known is None:
                # Only when Spark has accepted the condition: an invalid one must not be stored.
                selected(session, lake, plan)
                save(lake, plan)
            summary = replay(session, lake, plan, target, advance, interrupted.wait)
    finish(summary, job)


def _known(lake: Lake, name: str, selection: Selection, pace: Pace, target: dict[str, str]) -> ReplayPlan | None:
    """The replay of this name, if there is one. Raises LakeFault if it differs from the requested one, or was published
    elsewhere."""
    plan = load(lake, name)
    if plan is not None:
        insist_on_same(plan, selection, pace, target)
        with asking(target["url"]) as client:
            insist_on_known(plan, target, client.last_own_batch)
        # Version 0.1 did not record it.
        plan.target = place_of(target)
    return plan


def micros(text: str | None) -> int | None:
    """A time in ISO form, in UTC unless it has a zone."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"{text!r} is not a time: expected, for example, 2026-11-16T04:30:00") from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * MICROS)
