"""Joins `cluster.founding` with the store and the links: how this broker's cluster begins, or how it finds one.

Until its store belongs to a cluster the broker serves no clients, and its refusal names the brokers for which it waits
(`waiting`). When the store does, this node ends (`over`) and the owner starts another one with that store.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, assert_never

from pandomq.cluster.founding import Begin, Founding, Join, Primary, Save, SendFounding
from pandomq.cluster.founding_messages import decode_attempt, decode_message, encode_attempt, encode_message
from pandomq.hard_state import HardState
from pandomq.ids import ClusterId, NodeName
from pandomq.journal import hard_state as stored
from pandomq.journal.faults import ForeignFault
from pandomq.replica.members.membership import Member
from pandomq.replica.record import first_state

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.founding_messages import FoundingAttempt
    from pandomq.journal.effects import Ticket
    from pandomq.journal.journal import Journal
    from pandomq.node.cluster_settings import ClusterSettings

log = logging.getLogger("pandomq")


class Foundation:
    def __init__(self, name: str, settings: ClusterSettings, journal: Journal, random: Random) -> None:
        self._name = name
        self._settings = settings
        self._journal = journal
        self._random = random
        self._founding: Founding | None = None
        """The start of the cluster; None until the store is open."""
        self._linked: set[str] = set()
        self._saves: set[Ticket] = set()
        self._last_save: Ticket | None = None
        self._reason = self._said = ""
        self._sends: list[tuple[str, bytes]] = []
        self.over: str | None = None
        """Why this node ends, once the store belongs to a cluster."""

    def begin(self) -> None:
        """The store is open. Raises StoreFault."""
        state = self._journal.store_identity.state
        attempt = decode_attempt(state.founding)
        if self._settings.bootstrap:
            refuse_bootstrap(self._name, self._settings, state, attempt)
        self._founding = Founding(
            self._name,
            state.store_id,
            [Primary(member.name, member.address) for member in self._settings.primaries],
            cluster_id=state.cluster_id,
            attempt=attempt,
            draw_id=lambda: str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            bootstrap=self._settings.bootstrap,
            joins=bool(self._settings.join),
        )
        for peer in sorted(self._linked):
            self._founding.connected(peer)
        self._founding.start()
        self._carry_out()

    @property
    def waiting(self) -> str | None:
        """Why no client is served, if that is because there is no cluster yet."""
        if self._founding is None or self._journal.store_identity.state.cluster_id:
            return None
        return self._founding.waiting or "the cluster is being created"

    # Events.

    def tick(self, monotonic_ms: int) -> None:
        if self._founding is not None and self.over is None:
            self._founding.tick(monotonic_ms)
            self._carry_out()

    def connected(self, peer: str) -> None:
        self._linked.add(peer)
        if self._founding is not None:
            self._founding.connected(peer)
            self._carry_out()

    def disconnected(self, peer: str) -> None:
        self._linked.discard(peer)
        if self._founding is not None:
            self._founding.disconnected(peer)
            self._carry_out()

    def received(self, peer: str, data: bytes) -> None:
        """Raises BadFoundingMessage."""
        message = decode_message(data)
        if self._founding is not None:
            self._founding.received(peer, message)
            self._carry_out()

    def saved(self, ticket: Ticket) -> bool:
        """False if the ticket belongs to another component."""
        if ticket == self._last_save:
            self.over = self._reason
        elif ticket in self._saves:
            self._saves.discard(ticket)
            assert self._founding is not None
            self._founding.saved()
            self._carry_out()
        else:
            return False
        return True

    def take_sends(self) -> list[tuple[str, bytes]]:
        """Whole messages for peers; each may be lost."""
        sends, self._sends = self._sends, []
        return sends

    # Effects.

    def _carry_out(self) -> None:
        assert self._founding is not None
        store_identity = self._journal.store_identity
        for effect in self._founding.take_effects():
            match effect:
                case SendFounding(peer, message):
                    self._sends.append((peer, encode_message(message)))
                case Save(attempt):
                    self._saves.add(store_identity.save(encode_attempt(attempt)))
                case Begin(attempt):
                    self._reason = f"cluster {attempt.cluster_id} was created"
                    cluster_id, founding = ClusterId(attempt.cluster_id), encode_attempt(attempt)
                    self._last_save = store_identity.begin(cluster_id, founding, first_hard_state(attempt))
                case Join(cluster, known):
                    self._reason = f"this broker joins cluster {cluster}"
                    self._last_save = store_identity.join(ClusterId(cluster), encode_attempt(known))
                case _:
                    assert_never(effect)
        self._tell_person()

    def _tell_person(self) -> None:
        waiting = self.waiting or ""
        if waiting != self._said:
            self._said = waiting
            if waiting:
                log.info("broker %s is not yet part of a cluster and serves no clients: %s", self._name, waiting)


def first_hard_state(attempt: FoundingAttempt) -> HardState:
    """Saved together with the cluster's id, and so before the first vote: a broker that forgot that it was among the
    first could be counted twice."""
    members = [Member(NodeName(founder.name), founder.address) for founder in attempt.founders]
    return HardState(membership=first_state(members).membership)


def refuse_bootstrap(
    name: str, settings: ClusterSettings, state: stored.StoreState, attempt: FoundingAttempt | None
) -> None:
    """Raises StoreFault."""
    if state.cluster_id:
        text = f"the store already belongs to cluster {state.cluster_id}. Start the broker without --bootstrap."
    elif attempt is not None:
        text = (
            f"the store was prepared for cluster {attempt.cluster_id}, which other brokers may have created. Start "
            "the broker without --bootstrap, or give it an empty data directory."
        )
    elif all(member.name != name for member in settings.primaries):
        text = (
            "--bootstrap creates a cluster of the configured primaries, and this broker is not one of them. Run it "
            "on a primary."
        )
    else:
        return
    raise ForeignFault(text)
