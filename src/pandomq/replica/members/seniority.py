"""The order in which brokers become candidates when there is no root (R4): the one that has run longest is first.

This only sets an order: each broker waits a step for every linked one that is senior, and the first candidate is
usually elected before the second one would start. No vote is ever rejected because of it.
"""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.core import Core
from pandomq.replica.limits import CANDIDACY_JITTER_MS, CANDIDACY_STEP_MS, EQUAL_AGE_MS


def rank(core: Core) -> int:
    """Number of linked voters that are senior to this broker."""

    def is_senior(name: NodeName, born_ms: int) -> bool:
        # Messages take time, and each broker learns the ages of the others late: two brokers of nearly equal age would
        # both consider themselves senior. Their names decide then.
        if abs(born_ms - core.started_ms) <= EQUAL_AGE_MS:
            return name < core.name
        return born_ms < core.started_ms

    return sum(
        name in core.links and is_senior(name, born_ms)
        for name, born_ms in core.born_ms.items()
        if name in core.membership.names
    )


def delay_ms(core: Core) -> int:
    return rank(core) * CANDIDACY_STEP_MS + core.chance.randrange(CANDIDACY_JITTER_MS)


def delay_after_defeat_ms(core: Core) -> int:
    """No candidate won: a random delay separates those that started at the same time."""
    return delay_ms(core) + core.chance.randrange(core.settings.candidacy_ms)


def delay_after_split_ms(core: Core) -> int:
    """All reachable voters have voted, and no candidate has won: no need to wait for more."""
    return delay_ms(core) + core.chance.randrange(3 * CANDIDACY_STEP_MS)
