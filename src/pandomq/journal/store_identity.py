"""The cluster of a store and how it began: the part of the hard state that is written once or twice.

A store without a cluster has no log. After it was given one, the journal must not be used any more, since the names of
its files would contain no cluster. The store is opened again, and belongs to that cluster for ever.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import ClusterId
from pandomq.journal.effects import Ticket
from pandomq.journal.events import Event, HardStateSaved
from pandomq.journal.hard_state import StateStore, StoreState
from pandomq.journal.outbox import DiskRequests


class StoreIdentity:
    __slots__ = ("_emit", "_outbox", "_states")

    def __init__(self, states: StateStore, outbox: DiskRequests, emit: Callable[[Event], None]) -> None:
        self._states = states
        self._outbox = outbox
        self._emit = emit

    @property
    def state(self) -> StoreState:
        return self._states.state

    def save(self, founding: bytes) -> Ticket:
        """Saves it; completes with `HardStateSaved`."""
        return self._save(founding=founding)

    def begin(self, cluster_id: ClusterId, founding: bytes, hard_state: HardState) -> Ticket:
        """Starts a new cluster, with this state."""
        return self._belong(cluster_id, founding, hard=hard_state)

    def join(self, cluster_id: ClusterId, founding: bytes) -> Ticket:
        """Joins a cluster that existed before this store."""
        return self._belong(cluster_id, founding, emptied=True)

    def doubt(self) -> Ticket:
        """Marks the store as doubtful: other brokers may remember more of its log or votes than it does. Its owner gets
        this at the next opening."""
        return self._save(doubtful=True)

    def note_clock(self, ahead_ms: int) -> Ticket:
        """Notes that this machine's clock is this much ahead of the log's time. Completes with `HardStateSaved`."""
        return self._save(clock_ahead_ms=ahead_ms)

    def _belong(self, cluster_id: ClusterId, founding: bytes, **changes: object) -> Ticket:
        assert cluster_id and not self.state.cluster_id, "a store belongs to one cluster for ever"
        return self._save(cluster_id=cluster_id, founding=founding, **changes)

    def _save(self, **changes: object) -> Ticket:
        ticket = self._outbox.next_ticket()
        state = msgspec.structs.replace(self._states.state, **changes)
        self._states.save(state, lambda: self._emit(HardStateSaved(ticket)))
        return ticket
