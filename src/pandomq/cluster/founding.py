"""How brokers with new stores become a cluster: once, all together, and never twice.

A store is *new* until it belongs to a cluster. Each has an id of its own, drawn when it was made, so that one that was
lost and made again is known to be another. When all primaries are linked, have new stores and the same list of
primaries, the first of them by name draws a cluster id and proposes it as an *attempt* that names every store. Each
saves the attempt and says so; when all have, the first begins. Who hears from a broker that has begun with an attempt
that names its own store begins, too: as a voter, since this store never voted for anything. Everybody else who hears of
a cluster joins it as a learner.

Why no two clusters begin: an attempt begins only when every store in it has saved it, and no store that has begun
saves another. Who has saved a later attempt than the one it hears of trusts the news only from a store that is in the
later one as well: that store has begun, so the later one never will. What a lost store once said does not count.

A person may found a cluster alone (`bootstrap`). Then the other primaries' stores are not known; the first store of
each that is heard of is noted, once, by the one who founded it, and is a voter. Later ones are learners.

Pure: links and messages go in, effects come out, to be carried out in order. Of the whole only the last attempt
outlives a crash, and that is saved before it is spoken of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from pandomq.cluster.founding_messages import (
    ATTEMPT_BYTES_MAX,
    Attempt,
    Founder,
    FoundingMessage,
    Prepare,
    Tell,
    encode_attempt,
)

TELL_MS: Final = 1_000
"""How often a broker without a cluster says where it stands."""


class Primary(NamedTuple):
    name: str
    address: str


class Send(NamedTuple):
    peer: str
    message: FoundingMessage


class Save(NamedTuple):
    """To be synced; `Founding.saved` tells."""

    attempt: Attempt


class Begin(NamedTuple):
    """The store belongs to this attempt's cluster from now on, with its founders as the voters. To be synced; then the
    broker begins again, with that store. It is the last effect."""

    attempt: Attempt


class Join(NamedTuple):
    """The same, but as a learner; with what the cluster began with, if that is known."""

    cluster_id: str
    attempt: Attempt | None


FoundingEffect = Send | Save | Begin | Join


class Founding:
    def __init__(
        self,
        name: str,
        store: str,
        primaries: Sequence[Primary],
        *,
        cluster_id: str,
        attempt: Attempt | None,
        draw_id: Callable[[], str],
        bootstrap: bool = False,
        joins: bool = False,
    ) -> None:
        """`cluster_id` and `attempt` are what the store has. `joins`: it is to be a learner of a cluster that is there
        already, whatever else might be."""
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
        """Who is linked, and where it stands."""
        self._outlived: dict[str, str] = {}
        """The store that a peer had before the one it has."""
        self._proposed_to: set[str] = set()
        """Who was asked to prepare since the last tick."""
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
            self._end(Begin(Attempt(1, self._draw_id(), tuple(founders), self._name)))
        self._decide()

    def tick(self, now_ms: int) -> None:
        if now_ms - self._told_ms >= TELL_MS and not self._cluster_id:
            self._told_ms = now_ms
            self._proposed_to.clear()
            self._tell_all()
            self._decide()

    def connected(self, peer: str) -> None:
        """There is a link, or another one than before."""
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
        """What a Save asked for would outlive a crash; in the order of asking."""
        self._saves_awaited -= 1
        if not self._over and not self._saves_awaited:
            self._tell_all()
            self._decide()

    # What was heard.

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
            # The first that is heard of somebody: what it was told before it may not have been ready for.
            self._tell(peer)

    def _enter(self, peer: str, tell: Tell) -> None:
        """The first store that a founder comes with is noted by who founded the cluster without it."""
        attempt = self._attempt
        if attempt is None or attempt.by != self._name or attempt.store_of(self._name) != self._store:
            return
        if not tell.cluster_id and attempt.store_of(peer) == "":
            self._save(attempt.with_store(peer, tell.store))

    def _asked(self, peer: str, attempt: Attempt) -> None:
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
        """There is a cluster. One who tells of it may know more than another."""
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
            # Who founded it will note this store, unless it has lost its own.
            founder = self._peers.get(attempt.by)
            if founder is None or founder.store == attempt.store_of(attempt.by):
                return False
            self._end(Join(tell.cluster_id, attempt))
        elif attempt.by or (self._attempt is not None and self._is_in(tell, self._attempt)):
            self._end(Begin(attempt))
        elif self._attempt is None:
            # It was saved here once, and is gone: so may be a vote.
            self._end(Join(tell.cluster_id, attempt))
        else:
            return False
        return True

    def _is_named(self, store: str | None) -> bool:
        """One that was made since it was named could have voted before it was lost."""
        return store == self._store

    def _is_in(self, tell: Tell, attempt: Attempt) -> bool:
        """Its sender's store is among the attempt's; then, having begun, it is why that one never will."""
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
            self._save(Attempt(max(number, self._number) + 1, self._draw_id(), founders))
            return
        behind = [peer for peer, tell in tells.items() if tell.attempt != attempt]
        for peer in behind:
            if peer not in self._proposed_to:
                self._proposed_to.add(peer)
                self._effects.append(Send(peer, Prepare(attempt)))
        if not behind:
            self._end(Begin(attempt))

    # Effects.

    def _save(self, attempt: Attempt) -> None:
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
        # What is not saved yet is not spoken of; who asks hears when it is.
        if not self._saves_awaited:
            self._effects.append(self._said(peer))

    def _said(self, peer: str) -> Send:
        names = () if self._joins else self._names
        return Send(peer, Tell(self._store, names, self._cluster_id, self._attempt))

    # For people.

    @property
    def waiting(self) -> str:
        """For what this broker waits before it belongs to a cluster; empty if for nothing."""
        if self._cluster_id:
            return ""
        ids = self._clusters()
        if len(ids) > 1:
            return f"it hears of different clusters: {', '.join(sorted(ids))}"
        if self._joins:
            return "" if ids else "it waits for a broker of the cluster that it is to join"
        absent = [name for name in self._names if name != self._name and self._peers.get(name) is None]
        if absent:
            return f"it waits for {', '.join(absent)}"
        for name in self._names:
            tell = self._peers.get(name)
            if tell is not None and not tell.cluster_id and tell.primaries != self._names:
                return f"{name} is configured with other primaries: {', '.join(tell.primaries) or 'none'}"
        if len(encode_attempt(Attempt(0, "", self._founders_at_most))) > ATTEMPT_BYTES_MAX:
            return "names and addresses of the primaries are too long"
        return ""

    @property
    def _founders_at_most(self) -> tuple[Founder, ...]:
        return tuple(Founder(name, address, self._store) for name, address in self._primaries)
