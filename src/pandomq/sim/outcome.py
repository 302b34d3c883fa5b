"""What became of a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from pandomq.sim.agenda import Agenda
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.trace import Trace


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


def outcome_of(
    seed: int,
    trace: Trace,
    agenda: Agenda,
    live: Callable[[], None],
    counts: Callable[[], tuple[int, int]],
    faults: Mapping[str, int],
) -> Outcome:
    broken = promise = ""
    try:
        live()
    except BrokenPromise as failure:
        broken, promise = str(failure), failure.promise
    except Exception as failure:  # A bug of the broker's shows itself in any way.
        broken, promise = f"{type(failure).__name__}: {failure}", "no bug shows itself"
        if trace.detailed:
            raise
    if broken:
        trace.say("BROKEN", broken)
    messages, lives = counts()
    story = tuple(trace.story) if broken else ()
    return Outcome(seed, trace.hash, agenda.events, messages, lives, dict(faults), broken, promise, story)
