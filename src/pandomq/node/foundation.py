"""Joins `cluster.founding` with the store and the links: how this broker's cluster begins, or how it finds one.

Until its store belongs to a cluster nobody is served, and who comes hears for whom the broker waits (`waiting`). When
it does, this life ends (`over`) and the owner begins another one, with that store.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, assert_never

from pandomq.cluster.founding import Begin, Founding, Join, Primary, Save, Send
from pandomq.cluster.founding_messages import decode_attempt, decode_message, encode_attempt, encode_message
from pandomq.ids import ClusterId, NodeName
from pandomq.journal import hard_state as stored
from pandomq.journal.faults import ForeignFault
from pandomq.replica.membership import Member
from pandomq.replica.record import first_state

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.founding_messages import Attempt
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
        """None until the store is open."""
        self._linked: set[str] = set()
        self._saves: set[Ticket] = set()
        self._last_save: Ticket | None = None
        self._reason = self._said = ""
        self._sends: list[tuple[str, bytes]] = []
        self.over: str | None = None
        """Why this life ends, once the store belongs to a cluster."""

    def begin(self) -> None:
        """The store is open. Raises StoreFault."""
        state = self._journal.charter.state
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
        """Why nobody is served, if that is because there is no cluster yet."""
        if self._founding is None or self._journal.charter.state.cluster_id:
            return None
        return self._founding.waiting or "its cluster is just being founded"

    # What happens.

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
        """False if it is not one of ours."""
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
        """Whole messages for peers; any of them may be lost."""
        sends, self._sends = self._sends, []
        return sends

    # Effects.

    def _carry_out(self) -> None:
        assert self._founding is not None
        charter = self._journal.charter
        for effect in self._founding.take_effects():
            match effect:
                case Send(peer, message):
                    self._sends.append((peer, encode_message(message)))
                case Save(attempt):
                    self._saves.add(charter.save(encode_attempt(attempt)))
                case Begin(attempt):
                    self._reason = f"cluster {attempt.cluster_id} begins"
                    cluster_id, founding = ClusterId(attempt.cluster_id), encode_attempt(attempt)
                    self._last_save = charter.begin(cluster_id, founding, first_hard_state(attempt))
                case Join(cluster, known):
                    self._reason = f"this broker joins cluster {cluster}"
                    self._last_save = charter.join(ClusterId(cluster), encode_attempt(known))
                case _:
                    assert_never(effect)
        self._tell_person()

    def _tell_person(self) -> None:
        waiting = self.waiting or ""
        if waiting != self._said:
            self._said = waiting
            if waiting:
                log.info("broker %s belongs to no cluster yet: %s", self._name, waiting)


def first_hard_state(attempt: Attempt) -> stored.HardState:
    """Saved together with the cluster's id, and so before the first vote: who forgets that it was among the first could
    be counted twice."""
    members = [Member(NodeName(founder.name), founder.address) for founder in attempt.founders]
    return stored.HardState(membership=first_state(members).membership)


def refuse_bootstrap(name: str, settings: ClusterSettings, state: stored.StoreState, attempt: Attempt | None) -> None:
    """Raises StoreFault."""
    if state.cluster_id:
        text = f"the store belongs to cluster {state.cluster_id} already. Start it without --bootstrap."
    elif attempt is not None:
        text = (
            f"the store has been prepared for cluster {attempt.cluster_id}, which other brokers may have begun. Start "
            "it without --bootstrap, or give it an empty data directory."
        )
    elif all(member.name != name for member in settings.primaries):
        text = "--bootstrap founds a cluster of the configured primaries, and this broker is not one of them."
    else:
        return
    raise ForeignFault(text)
