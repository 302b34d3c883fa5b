"""Runs `pandomq pipeline archive`, `compact` and `replay`."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pandomq.cli.failures import Refused, WrongUse
from pandomq.cli.output import say
from pandomq.cli.pipeline.running import finish, insist_on_broker, on_interruption, progress, session_for
from pandomq.pipeline.archive import Archive, Wish
from pandomq.pipeline.compaction import compact, groups_of
from pandomq.pipeline.lake import Lake, LakeFault
from pandomq.pipeline.replay import replay, selected
from pandomq.pipeline.replay_plan import MICROS, Pace, Selection, draw_up, load, save


@contextmanager
def refusing() -> Iterator[None]:
    """What is wrong with a lake, in a line."""
    try:
        yield
    except LakeFault as fault:
        raise Refused(str(fault)) from fault


def run_archive(wish: Wish, directory: Path, delta: bool, master: str, json: Path | None, report: Path | None) -> None:
    with refusing():
        lake = Lake(directory.resolve(), delta=delta)
    insist_on_broker(wish.url)
    with refusing(), session_for("archive", master) as session:
        archive = Archive(session, lake, wish)
        on_interruption(archive.stop)
        with progress("rows", None) as advance:
            summary = archive.run(advance)
    finish(summary, json, report)


def run_compact(directory: Path, master: str, json: Path | None, report: Path | None) -> None:
    with refusing():
        lake = Lake.existing(directory.resolve())
        total = len(groups_of(lake.files()))
        with session_for("compact", master) as session, progress("streams and days", total) as advance:
            summary = compact(session, lake, advance)
    finish(summary, json, report)


def run_replay(
    directory: Path,
    target: dict[str, str],
    name: str | None,
    selection: Selection,
    pace: Pace,
    *,
    master: str,
    json: Path | None,
    report: Path | None,
) -> None:
    if ("exchange" in target) == ("stream" in target):
        raise WrongUse("say where rows go: --exchange, or --to-stream")
    if pace.rate and pace.factor:
        raise WrongUse("--rate and --factor exclude each other")
    interrupted = threading.Event()

    def interrupt() -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    with refusing():
        lake = Lake.existing(directory.resolve())
        insist_on_broker(target["url"])
        known = None if name is None else load(lake, name)
        plan = known or draw_up(name or f"replay-{uuid.uuid4().hex[:12]}", lake.files(), selection, pace)
        if not plan.files:
            raise LakeFault("nothing in the lake is meant by this")
        say(f"this is replay {plan.name}: with --name {plan.name} it goes on if it is broken off")
        with session_for("replay", master) as session, progress("slices", len(plan.slices) - plan.done) as advance:
            on_interruption(interrupt)
            if known is None:
                # Not before Spark knows what is meant: a condition that cannot be is not to be gone on with.
                selected(session, lake, plan)
                save(lake, plan)
            summary = replay(session, lake, plan, target, advance, interrupted.wait)
    finish(summary, json, report)


def micros(text: str | None) -> int | None:
    """A time as people write it, in UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"times are given as 2026-11-16T04:30:00, not as {text!r}") from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * MICROS)
