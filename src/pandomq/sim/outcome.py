"""What became of a seed."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pandomq.sim.agenda import Agenda
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.trace import Trace

SOURCES: Final = "pandomq/"
SEEN_CHARACTERS_MAX: Final = 80


class Outcome(msgspec.Struct, frozen=True):
    seed: int
    hash: str
    events: int
    messages: int
    """Published, or confirmed entries."""
    lives: int
    faults: dict[str, int] = {}
    """How often each kind struck."""
    broken: str = ""
    promise: str = ""
    story: tuple[str, ...] = ()
    seen_by: str = ""
    """The file of the checker, or where a bug showed itself."""


def outcome_of(
    seed: int,
    trace: Trace,
    agenda: Agenda,
    live: Callable[[], None],
    counts: Callable[[], tuple[int, int]],
    faults: Mapping[str, int],
) -> Outcome:
    broken = promise = seen_by = ""
    try:
        live()
    except BrokenPromise as failure:
        broken, promise, seen_by = str(failure), failure.promise, _raised_in(failure)
    except Exception as failure:  # A bug of the broker's shows itself in any way.
        broken, promise = f"{type(failure).__name__}: {failure}", "no bug shows itself"
        seen_by = f"{_raised_in(failure)}: {broken}"[:SEEN_CHARACTERS_MAX]
        if trace.detailed:
            raise
    if broken:
        trace.say("BROKEN", broken)
    messages, lives = counts()
    story = tuple(trace.story) if broken else ()
    return Outcome(seed, trace.hash, agenda.events, messages, lives, dict(faults), broken, promise, story, seen_by)


def _raised_in(failure: Exception) -> str:
    """The innermost of our own files."""
    names = [frame.filename for frame in traceback.extract_tb(failure.__traceback__) if SOURCES in frame.filename]
    return names[-1].rpartition(SOURCES)[2].removesuffix(".py") if names else "elsewhere"
