"""In which order brokers stand when there is no root (R4): the one that has run longest first.

It only orders: each waits a step for every one that is senior and linked, and the first one who asks is usually elected
before the second one would ask. No vote is ever refused for it.
"""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.core import Core
from pandomq.replica.limits import CANDIDACY_JITTER_MS, CANDIDACY_STEP_MS, EQUAL_AGE_MS


def rank(core: Core) -> int:
    """How many linked voters are senior to this broker."""

    def is_senior(name: NodeName, born_ms: int) -> bool:
        # Messages take time, and each broker hears late how old the others are: of nearly equal ages both would think
        # that they are the elder. Those are told apart by name.
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
    """Nobody won: chance parts those who stood at the same time."""
    return delay_ms(core) + core.chance.randrange(core.settings.candidacy_ms)


def delay_after_split_ms(core: Core) -> int:
    """All who can be asked have voted, and nobody has won: no need to wait for more."""
    return delay_ms(core) + core.chance.randrange(3 * CANDIDACY_STEP_MS)
