"""The outcome of a seed."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from pandomq.sim.agenda import Agenda
from pandomq.sim.campaigns.reduction import Reduction, Strikes
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.trace import WorldTrace

SOURCES: Final = "pandomq/"
SEEN_CHARACTERS_MAX: Final = 80


class WorldOutcome(msgspec.Struct, frozen=True):
    seed: int
    hash: str
    events: int
    messages: int
    """The number of published messages, or of confirmed entries."""
    lives: int
    faults: dict[str, int] = {}
    """The number of strikes of each kind of fault."""
    broken: str = ""
    promise: str = ""
    story: tuple[str, ...] = ()
    seen_by: str = ""
    """The file of the checker, or the file in which a bug raised an exception."""
    strikes: tuple[str, ...] = ()
    """The kinds of the faults that struck, in order."""
    course: Reduction = Reduction()
    """The names of all parts of the world, which a reduction can leave out."""


def outcome_of(
    seed: int,
    trace: WorldTrace,
    agenda: Agenda,
    live: Callable[[], None],
    counts: Callable[[], tuple[int, int]],
    strikes: Strikes,
    course: Callable[[], Reduction],
) -> WorldOutcome:
    broken = promise = seen_by = ""
    try:
        live()
    except BrokenPromise as failure:
        broken, promise, seen_by = str(failure), failure.promise, _raised_in(failure)
    except Exception as failure:  # A bug of the broker may raise anything.
        broken, promise = f"{type(failure).__name__}: {failure}", "no unexpected exception is raised"
        seen_by = f"{_raised_in(failure)}: {broken}"[:SEEN_CHARACTERS_MAX]
        if trace.detailed:
            raise
    if broken:
        trace.say("BROKEN", broken)
    messages, lives = counts()
    story = tuple(trace.story) if broken else ()
    return WorldOutcome(
        seed,
        trace.hash,
        agenda.events,
        messages,
        lives,
        dict(Counter(strikes.kinds)),
        broken,
        promise,
        story,
        seen_by,
        tuple(strikes.kinds),
        course(),
    )


def _raised_in(failure: Exception) -> str:
    """Returns the innermost of our own files in the traceback."""
    names = [frame.filename for frame in traceback.extract_tb(failure.__traceback__) if SOURCES in frame.filename]
    return names[-1].rpartition(SOURCES)[2].removesuffix(".py") if names else "elsewhere"
