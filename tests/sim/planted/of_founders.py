"""Bugs that show only where a founder loses its store while another founder is down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.cluster.founding import Begin, Founding
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq.cluster.founding_messages import FoundingAttempt, Tell

NODES: Final = 3


def _known_by_name(patch: Patch) -> None:
    may_end = Founding._may_end

    def trusting(founding: Founding, tell: Tell) -> bool:
        attempt = tell.attempt
        if attempt is None or founding._joins or not attempt.store_of(founding._name):
            return may_end(founding, tell)
        founding._end(Begin(attempt))
        return True

    patch.set(Founding, "_may_end", trusting)


def _keep_attempt(patch: Patch) -> None:
    propose = Founding._propose

    def stubborn(founding: Founding) -> None:
        attempt: FoundingAttempt | None = founding._attempt
        known = founding._peers
        if attempt is not None:
            # Every store that a founder has by now counts as the one that the attempt names.
            founding._peers = {
                name: None
                if tell is None
                else msgspec.structs.replace(tell, store=attempt.store_of(name) or tell.store)
                for name, tell in known.items()
            }
        propose(founding)
        founding._peers = known

    patch.set(Founding, "_propose", stubborn)


PLANTED_BUGS: Final = (
    PlantedBug("founder-by-name", "A founding broker that has lost its store is a voter again.", _known_by_name, NODES),
    PlantedBug(
        "lost-store-counts",
        "The founding brokers wait for the agreement of a store that was lost.",
        _keep_attempt,
        NODES,
    ),
)
