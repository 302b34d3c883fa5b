"""To which cluster a store belongs, and how that began: the part of the hard state that is written once or twice.

A store without a cluster has no log. Once it was given one the journal is not to be used any more: its files would name
none. It is opened again, and belongs to that cluster for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pandomq.ids import ClusterId
from pandomq.journal.effects import Ticket
from pandomq.journal.events import Event, StateSaved
from pandomq.journal.hard_state import HardState, StateStore, StoreState
from pandomq.journal.outbox import Outbox


class Charter:
    __slots__ = ("_emit", "_outbox", "_states")

    def __init__(self, states: StateStore, outbox: Outbox, emit: Callable[[Event], None]) -> None:
        self._states = states
        self._outbox = outbox
        self._emit = emit

    @property
    def state(self) -> StoreState:
        return self._states.state

    def save(self, founding: bytes) -> Ticket:
        """`StateSaved` tells."""
        return self._save(founding=founding)

    def begin(self, cluster_id: ClusterId, founding: bytes, hard_state: HardState) -> Ticket:
        """The cluster begins now, with this state."""
        return self._belong(cluster_id, founding, hard=hard_state)

    def join(self, cluster_id: ClusterId, founding: bytes) -> Ticket:
        """The cluster was there before this store."""
        return self._belong(cluster_id, founding, emptied=True)

    def doubt(self) -> Ticket:
        """Others may remember more of what this store said than it does; its owner is told when it is opened next."""
        return self._save(doubtful=True)

    def _belong(self, cluster_id: ClusterId, founding: bytes, **changes: object) -> Ticket:
        assert cluster_id and not self.state.cluster_id, "a store belongs to one cluster for ever"
        return self._save(cluster_id=cluster_id, founding=founding, **changes)

    def _save(self, **changes: object) -> Ticket:
        ticket = self._outbox.next_ticket()
        state = msgspec.structs.replace(self._states.state, **changes)
        self._states.save(state, lambda: self._emit(StateSaved(ticket)))
        return ticket
