"""The states of a broker between reading its store and its end, and which state may follow which.

Only `node.transitions` enters states. All other parts read the state, or one of its properties. Where a lease counts
beside the state, the part that knows the lease has the property: `Replication.serving` for entries,
`ServiceState.serves` for clients of the root, `Serving.holds` for clients of a front.

The diagram in docs/replication.md is drawn from the table.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.node.log.handover_wait import HandoverWait
    from pandomq.replica.effects import Serve


class BrokerState(enum.Enum):
    OPENING = "opening"
    """Its store is being read."""
    FOUNDING = "founding"
    """The store is read. It belongs to no cluster yet, or the first members of its cluster are being saved."""
    FOLLOWING = "following"
    """The broker applies the entries that the root commits, or waits for a root. A front may serve clients."""
    ELECTED = "elected"
    """The broker is the next root; the entries before its term are still being applied."""
    TAKING_OVER = "taking over"
    """The broker proposes entries, and accepts no client until the entry about the takeover is committed."""
    SERVING = "serving"
    """The broker serves clients as root, while its lease is valid and it does not hand over."""
    HANDED_OVER = "handed over"
    """Another broker was elected at its request. Its log follows that root, and its state no longer changes."""
    RESTARTING = "restarting"
    """This node ends, and another node begins with what is on the disk. Nothing is written, sent or released."""


TRANSITIONS: Final[dict[BrokerState, dict[BrokerState, str]]] = {
    BrokerState.OPENING: {
        BrokerState.FOUNDING: "the store is read",
        BrokerState.SERVING: "the log is in memory, so that there is no other broker",
        BrokerState.RESTARTING: "an exception left the state in doubt",
    },
    BrokerState.FOUNDING: {
        BrokerState.FOLLOWING: "the store belongs to a cluster, and names its members",
        BrokerState.RESTARTING: "a cluster was created or joined, or an exception left the state in doubt",
    },
    BrokerState.FOLLOWING: {
        BrokerState.ELECTED: "a majority voted for this broker, and an entry of its term is committed",
        BrokerState.RESTARTING: "the store was replaced, or an exception left the state in doubt",
    },
    BrokerState.ELECTED: {
        BrokerState.TAKING_OVER: "all entries before its term are applied",
        BrokerState.FOLLOWING: "another broker was elected",
        BrokerState.RESTARTING: "the store was replaced, or an exception left the state in doubt",
    },
    BrokerState.TAKING_OVER: {
        BrokerState.SERVING: "the entry about the takeover is committed",
        BrokerState.HANDED_OVER: "another broker was elected at its request",
        BrokerState.RESTARTING: "another broker was elected, or an exception left the state in doubt",
    },
    BrokerState.SERVING: {
        BrokerState.HANDED_OVER: "another broker was elected at its request",
        BrokerState.RESTARTING: "another broker was elected, or an exception left the state in doubt",
    },
    BrokerState.HANDED_OVER: {
        BrokerState.RESTARTING: "the next root serves, or takes too long",
    },
    BrokerState.RESTARTING: {},
}


_READING: Final = (BrokerState.OPENING,)
_WITHOUT_REPLICA: Final = (*_READING, BrokerState.FOUNDING, BrokerState.RESTARTING)
_PROPOSING: Final = (BrokerState.SERVING, BrokerState.TAKING_OVER)
_TOOK_OVER: Final = (*_PROPOSING, BrokerState.HANDED_OVER)


class BrokerLife:
    """The state of one node. A broker that restarts its state makes another node, with another life."""

    __slots__ = (
        "elected",
        "handover_wait",
        "is_over",
        "proposes",
        "restart_reason",
        "runs_replica",
        "state",
        "store_is_read",
        "took_over",
    )

    def __init__(self) -> None:
        self.state = BrokerState.OPENING
        self.elected: Serve | None = None
        """While the broker is elected: its term, and the entries that it has to apply first."""
        self.handover_wait: HandoverWait | None = None
        """While the broker has handed over: how long it stays."""
        self.restart_reason: str | None = None
        """At the end: why this node ends."""
        # The following depend on the state alone. They are read several times in each step.
        self.is_over = False
        self.store_is_read = False
        self.runs_replica = False
        """Whether the replica takes events: it knows the store, and this node has not ended."""
        self.proposes = False
        """Whether the broker is root, if its lease is valid; without the lease it may not know that it is not."""
        self.took_over = False
        """Whether the broker has proposed entries in this life, so that its state may hold changes that are not
        committed. Only a restart makes it a follower again."""

    def enter(
        self,
        new: BrokerState,
        *,
        elected: Serve | None = None,
        handover_wait: HandoverWait | None = None,
        restart_reason: str | None = None,
    ) -> None:
        assert new in TRANSITIONS[self.state], f"a broker that is {self.state.value} cannot be {new.value} next"
        self.state = new
        self.elected, self.handover_wait, self.restart_reason = elected, handover_wait, restart_reason
        self.runs_replica = new not in _WITHOUT_REPLICA
        self.proposes = new in _PROPOSING
        self.is_over = new is BrokerState.RESTARTING
        if not self.is_over:
            # At the end the store and the memory are still those of the state before.
            self.store_is_read = new not in _READING
            self.took_over = new in _TOOK_OVER
