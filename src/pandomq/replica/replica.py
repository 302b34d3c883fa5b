"""Elects a root and replicates one log.

    replica = Replica(name, settings, log, chance)
    replica.recovered(facts, now_ms)                 the store is open
    replica.tick(now_ms)                             before anything else that happens at that time
    replica.connected(peer) / disconnected(peer)
    replica.step(sender, message)
    replica.propose(payloads)                        on a root
    replica.completed(completion)
    for effect in replica.take_effects(): …          after any of these, to be carried out in order

Pure: time arrives as tick(), peers as step(), chance is injected, the disk answers through completed().
"""

from __future__ import annotations

from collections.abc import Sequence

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.completions import Completion
from pandomq.replica.effects import Effect
from pandomq.replica.hard_state import HardState, StoreFacts
from pandomq.replica.membership import Member
from pandomq.replica.messages import Message
from pandomq.replica.ports import Chance, LogPort
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from pandomq.replica.view import ReplicaView


def first_state(members: Sequence[Member]) -> HardState:
    """What a store begins with whose cluster begins with these voters. To be saved before `recovered`, on all of them,
    and only if all are there and empty or a person says so (R21): a broker that lost its store and begins like this
    may vote twice."""
    raise NotImplementedError


class NotRoot(Exception):
    """Only a root takes proposals, and not while it hands over."""


class Replica:
    def __init__(
        self,
        name: NodeName,
        settings: ReplicaSettings,
        log: LogPort,
        chance: Chance,
        *,
        observer: bool = False,
    ) -> None:
        """Begins as recovering: it answers nobody. `log` is not asked before `recovered`."""

    def recovered(self, facts: StoreFacts, now_ms: int) -> None:
        """The store is open, and all that is in it is synced."""

    # Inputs.

    def tick(self, now_ms: int) -> None:
        """What time it is, by a clock that never goes back. To be told before any input of that time, and some ten
        times within a lease: a root whose lease ran out while it was stopped resigns here, before it does anything
        else."""

    def connected(self, peer: NodeName) -> None:
        """There is a link to this broker. It may be said again when the link was replaced."""

    def disconnected(self, peer: NodeName, *, by_peer: bool) -> None:
        """`by_peer`: the other end closed it, as a system does for a process that died; not if it was given up here.
        A root that closes links counts them as lost at once, so a closed link also ends the promise to it."""

    def step(self, sender: NodeName, message: Message) -> None: ...

    def completed(self, completion: Completion) -> None: ...

    def propose(self, payloads: Sequence[bytes], *, prompt: bool = False) -> LogIndex:
        """Entries for the log; returns the index of the last. `prompt` asks for `Received` before they are committed.
        Raises NotRoot."""
        raise NotImplementedError

    def take_effects(self) -> list[Effect]:
        raise NotImplementedError

    # What a person asks for. Each is answered by ChangeEnded, at once if it cannot be.

    def change_members(self, members: Sequence[Member]) -> None:
        """On a root: these are to be the voters. New ones must be linked; they catch up first."""

    def hand_over(self, successor: NodeName | None = None) -> None:
        """On a root: another voter, or the one that is furthest, is to be root, and to know what was delivered."""

    def resign(self, reason: str) -> None:
        """On a root: at once, to nobody in particular."""

    def promote(self, dead: Sequence[NodeName], epoch_id: str) -> None:
        """By force: this broker begins a new epoch without the dead. What only they have is lost to the cluster. It
        is refused if one of them answers, or if a broker that lives has a newer log or hears a root."""

    # What others may know.

    @property
    def role(self) -> Role:
        raise NotImplementedError

    @property
    def root(self) -> NodeName | None:
        """Who is root, as far as is known here; None if nobody was heard of within the promise."""
        raise NotImplementedError

    @property
    def commit_index(self) -> LogIndex:
        raise NotImplementedError

    @property
    def serving(self) -> bool:
        """A root that has committed an entry of its term, whose lease holds, and that is not handing over."""
        raise NotImplementedError

    @property
    def holds_back(self) -> bool:
        """Publishers are to wait: what is proposed does not get committed fast enough, or at all."""
        raise NotImplementedError

    @property
    def needed_from(self) -> LogIndex:
        """Entries from here on are needed by backups that are in sync; the log is not to be reclaimed past it."""
        raise NotImplementedError

    def view(self) -> ReplicaView:
        raise NotImplementedError

    def check(self) -> None:
        """The invariants; raises AssertionError. The simulator calls it after every step."""
