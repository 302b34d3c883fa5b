"""How brokers with new stores form a cluster: once, all together, and never twice.

A store is *new* until it belongs to a cluster. Each has a random id from its creation, so that a store that was lost
and created again is recognized as another. When all primaries are linked, have new stores and the same list of
primaries, the first of them by name draws a cluster id and proposes it as an *attempt* that names every store. Each
saves the attempt and reports that; when all have, the first begins. A broker that receives the report of one that has
begun, with an attempt that names its own store, begins, too: as a voter, since this store never voted. Every other
broker that learns of a cluster joins it as a learner.

Why no two clusters begin: an attempt begins only when every store in it has saved it, and no store that has begun saves
another. A broker that has saved a later attempt than the one in a report accepts the report only from a store that is
in the later one as well: that store has begun, so the later one never will. Reports of a lost store do not count.

An operator may form a cluster with one broker alone (`bootstrap`). Then the other primaries' stores are unknown; that
broker records the first store of each that connects, once, as a voter. Later ones are learners.

Pure: links and messages go in, effects come out, to be carried out in order. Only the last attempt survives a crash,
and it is saved before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pandomq.cluster.founding_messages import (
    ATTEMPT_BYTES_MAX,
    Founder,
    FoundingAttempt,
    FoundingMessage,
    Prepare,
    Tell,
    encode_attempt,
)

TELL_MS: Final = 1_000
"""How often a broker without a cluster sends its state."""


class Primary(NamedTuple):
    name: str
    address: str


class SendFounding(NamedTuple):
    peer: str
    message: FoundingMessage


class Save(NamedTuple):
    """To be synced; answered by `Founding.saved`."""

    attempt: FoundingAttempt


class Begin(NamedTuple):
    """The store belongs to this attempt's cluster from now on, with its founders as the voters. To be synced; then the
    broker restarts with that store. It is the last effect."""

    attempt: FoundingAttempt


class Join(NamedTuple):
    """Join the cluster as a learner; with the cluster's first attempt, if that is known."""

    cluster_id: str
    attempt: FoundingAttempt | None


FoundingEffect = SendFounding | Save | Begin | Join


class Founding:
    def __init__(
        self,
        name: str,
        store: str,
        primaries: Sequence[Primary],
        *,
        cluster_id: str,
        attempt: FoundingAttempt | None,
        draw_id: Callable[[], str],
        bootstrap: bool = False,
        joins: bool = False,
    ) -> None:
        """`cluster_id` and `attempt` are those in the store. `joins`: it must become a learner of an existing cluster
        in any case."""
        self._name = name
        self._store = store
        self._primaries = tuple(sorted(primaries))
        self._names = tuple(primary.name for primary in self._primaries)
        self._cluster_id = cluster_id
        self._attempt = attempt
        self._draw_id = draw_id
        self._bootstrap = bootstrap
        self._joins = joins or name not in self._names
        self._peers: dict[str, Tell | None] = {}
        """The linked brokers, and their states."""
        self._outlived: dict[str, str] = {}
        """The store that a peer had before its current one."""
        self._proposed_to: set[str] = set()
        """The brokers that got a Prepare since the last tick."""
        self._saves_awaited = 0
        self._over = False
        self._effects: list[FoundingEffect] = []
        self._told_ms = 0

    def take_effects(self) -> list[FoundingEffect]:
        effects, self._effects = self._effects, []
        return effects

    # Inputs.

    def start(self) -> None:
        if self._bootstrap and not self._cluster_id:
            founders = [
                Founder(name, address, self._store if name == self._name else "") for name, address in self._primaries
            ]
            self._end(Begin(FoundingAttempt(1, self._draw_id(), tuple(founders), self._name)))
        self._decide()

    def tick(self, now_ms: int) -> None:
        if now_ms - self._told_ms >= TELL_MS and not self._cluster_id:
            self._told_ms = now_ms
            self._proposed_to.clear()
            self._tell_all()
            self._decide()

    def connected(self, peer: str) -> None:
        """To be called when there is a new link, possibly in place of an older one."""
        if not self._over:
            self._peers[peer] = None
            self._proposed_to.discard(peer)
            self._tell(peer)

    def disconnected(self, peer: str) -> None:
        self._peers.pop(peer, None)

    def received(self, peer: str, message: FoundingMessage) -> None:
        if self._over or peer not in self._peers:
            return
        if isinstance(message, Tell):
            self._heard(peer, message)
        else:
            self._asked(peer, message.attempt)
        self._decide()

    def saved(self) -> None:
        """The state of a Save would survive a crash; called in the order of the Saves."""
        self._saves_awaited -= 1
        if not self._over and not self._saves_awaited:
            self._tell_all()
            self._decide()

    # Messages.

    def _heard(self, peer: str, tell: Tell) -> None:
        before = self._peers[peer]
        if self._outlived.get(peer) == tell.store:
            return
        if before is not None and before.store != tell.store:
            self._outlived[peer] = before.store
        self._peers[peer] = tell
        if self._cluster_id:
            self._enter(peer, tell)
        if before is None or (self._cluster_id and not tell.cluster_id):
            # The first message of this broker: it may not have been ready for earlier ones.
            self._tell(peer)

    def _enter(self, peer: str, tell: Tell) -> None:
        """The broker that formed the cluster alone records the first store of each founder."""
        attempt = self._attempt
        if attempt is None or attempt.by != self._name or attempt.store_of(self._name) != self._store:
            return
        if not tell.cluster_id and attempt.store_of(peer) == "":
            self._save(attempt.with_store(peer, tell.store))

    def _asked(self, peer: str, attempt: FoundingAttempt) -> None:
        if self._cluster_id or self._joins or self._saves_awaited:
            self._tell(peer)
            return
        names = tuple(founder.name for founder in attempt.founders)
        if attempt.store_of(self._name) == self._store and names == self._names and attempt.number > self._number:
            self._save(attempt)
        else:
            self._tell(peer)

    @property
    def _number(self) -> int:
        return 0 if self._attempt is None else self._attempt.number

    # Decisions of a broker without a cluster.

    def _decide(self) -> None:
        if self._cluster_id or self._over or self._saves_awaited:
            return
        ids = self._clusters()
        if len(ids) == 1:
            self._follow(ids.pop())
        elif not ids and self._is_first() and not self.waiting:
            self._propose()

    def _clusters(self) -> set[str]:
        return {tell.cluster_id for tell in self._peers.values() if tell is not None and tell.cluster_id}

    def _follow(self, cluster_id: str) -> None:
        """Follows a cluster that exists. Another report may contain more about it."""
        if self._attempt is not None and self._attempt.cluster_id == cluster_id and not self._joins:
            self._end(Begin(self._attempt))
            return
        for tell in self._peers.values():
            if tell is not None and tell.cluster_id == cluster_id and self._may_end(tell):
                return

    def _may_end(self, tell: Tell) -> bool:
        attempt = tell.attempt
        named = None if attempt is None else attempt.store_of(self._name)
        if attempt is None or self._joins or not (named == "" or self._is_named(named)):
            self._end(Join(tell.cluster_id, attempt))
        elif named == "":
            # The broker that formed it will record this store, unless it has lost its own.
            founder = self._peers.get(attempt.by)
            if founder is None or founder.store == attempt.store_of(attempt.by):
                return False
            self._end(Join(tell.cluster_id, attempt))
        elif attempt.by or (self._attempt is not None and self._is_in(tell, self._attempt)):
            self._end(Begin(attempt))
        elif self._attempt is None:
            # It was saved here once, and is gone: a vote may be lost as well.
            self._end(Join(tell.cluster_id, attempt))
        else:
            return False
        return True

    def _is_named(self, store: str | None) -> bool:
        """A store that was created after it was named could have voted before it was lost."""
        return store == self._store

    def _is_in(self, tell: Tell, attempt: FoundingAttempt) -> bool:
        """The sender's store is in the attempt; if it has begun another one, that attempt never will begin."""
        sender = next(name for name, told in self._peers.items() if told is tell)
        return attempt.store_of(sender) == tell.store

    # The first by name.

    def _is_first(self) -> bool:
        return not self._joins and self._names[0] == self._name

    def _propose(self) -> None:
        tells = {peer: tell for peer, tell in self._peers.items() if tell is not None and peer in self._names}
        stores = {name: tells[name].store if name in tells else self._store for name in self._names}
        number = max((tell.attempt.number for tell in tells.values() if tell.attempt is not None), default=0)
        attempt = self._attempt
        if attempt is None or attempt.number < number or any(attempt.store_of(name) != stores[name] for name in stores):
            founders = tuple(Founder(name, address, stores[name]) for name, address in self._primaries)
            self._save(FoundingAttempt(max(number, self._number) + 1, self._draw_id(), founders))
            return
        behind = [peer for peer, tell in tells.items() if tell.attempt != attempt]
        for peer in behind:
            if peer not in self._proposed_to:
                self._proposed_to.add(peer)
                self._effects.append(SendFounding(peer, Prepare(attempt)))
        if not behind:
            self._end(Begin(attempt))

    # Effects.

    def _save(self, attempt: FoundingAttempt) -> None:
        self._attempt = attempt
        self._saves_awaited += 1
        self._proposed_to.clear()
        self._effects.append(Save(attempt))

    def _end(self, effect: Begin | Join) -> None:
        self._over = True
        self._effects.append(effect)

    def _tell_all(self) -> None:
        for peer in sorted(self._peers):
            self._tell(peer)

    def _tell(self, peer: str) -> None:
        # An attempt is not sent before it is saved; a broker that asks gets it afterwards.
        if not self._saves_awaited:
            self._effects.append(self._said(peer))

    def _said(self, peer: str) -> SendFounding:
        names = () if self._joins else self._names
        return SendFounding(peer, Tell(self._store, names, self._cluster_id, self._attempt))

    # For people.

    @property
    def waiting(self) -> str:
        """The brokers that this broker waits for before it belongs to a cluster, in words; empty if there are none."""
        if self._cluster_id:
            return ""
        ids = self._clusters()
        if len(ids) > 1:
            return f"connected to brokers of different clusters: {', '.join(sorted(ids))}"
        if self._joins:
            return "" if ids else "waiting for a broker of the cluster that it joins"
        absent = [name for name in self._names if name != self._name and self._peers.get(name) is None]
        if absent:
            return f"waiting for {', '.join(absent)}"
        for name in self._names:
            tell = self._peers.get(name)
            if tell is not None and not tell.cluster_id and tell.primaries != self._names:
                return f"{name} is configured with different primaries: {', '.join(tell.primaries) or 'none'}"
        if len(encode_attempt(FoundingAttempt(0, "", self._founders_at_most))) > ATTEMPT_BYTES_MAX:
            return "the names and addresses of the primaries are too long"
        return ""

    @property
    def _founders_at_most(self) -> tuple[Founder, ...]:
        return tuple(Founder(name, address, self._store) for name, address in self._primaries)
