"""The replica's own part of the hard state: members and epochs by their index in the log, and the open obligations of
this broker.

A set of members is in force as soon as its entry is in the log, and if that entry is cut off again the set before it
is. So the record keeps the last committed set and those after it. Only one change is under way at a time, so there are
few of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, Term
from pandomq.replica.limits import EPOCHS_KEPT, MEMBERS_MAX, RECORD_BYTES_MAX
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.protocol.position import Position


class Config(msgspec.Struct, frozen=True, array_like=True):
    """The members from this entry on."""

    index: LogIndex
    term: Term
    membership: Membership


class EpochStart(msgspec.Struct, frozen=True, array_like=True):
    index: LogIndex
    epoch: int
    epoch_id: str


FIRST_EPOCH = EpochStart(LogIndex(0), 0, "")


class Arriving(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot is about to replace the log. After a crash the broker checks whether it did."""

    index: LogIndex
    configs: tuple[Config, ...]
    epochs: tuple[EpochStart, ...]


class EpochClaim(msgspec.Struct, frozen=True, array_like=True):
    """A forced promotion was about to begin this epoch. Whether it did is unknown."""

    epoch: int
    epoch_id: str


class Record(msgspec.Struct, frozen=True):
    configs: tuple[Config, ...] = ()
    """Oldest first; empty as long as this broker knows of no cluster."""
    epochs: tuple[EpochStart, ...] = (FIRST_EPOCH,)
    joining: bool = False
    """Earlier votes or entries of this broker may be lost: it does not take part until a root admits it (R21)."""
    floor: Position | None = None
    """Its log was damaged and had reached up to here: it votes as if it still did (D12)."""
    arriving: Arriving | None = None
    excerpts: bool = False
    """The log holds the excerpts for a secondary."""
    claim: EpochClaim | None = None
    """The last epoch of whose planned beginning this broker was told: no other one may use its number."""

    @property
    def membership(self) -> Membership | None:
        return self.configs[-1].membership if self.configs else None

    def epoch_at(self, index: LogIndex) -> EpochStart | None:
        """The epoch in which this entry was written; None if that is no longer recorded."""
        for start in reversed(self.epochs):
            if start.index <= index:
                return start
        return None

    def with_config(self, config: Config) -> Record:
        return msgspec.structs.replace(self, configs=(*self.configs, config))

    def with_epoch(self, start: EpochStart) -> Record:
        return msgspec.structs.replace(self, epochs=(*self.epochs, start)[-EPOCHS_KEPT:])

    def cut(self, first_index: LogIndex) -> Record:
        """The log ends before this entry: changes from there on are void. The oldest set stays: it is committed, or the
        only one that this broker knows."""
        configs = tuple(config for place, config in enumerate(self.configs) if place == 0 or config.index < first_index)
        epochs = tuple(start for start in self.epochs if start.index < first_index)
        return msgspec.structs.replace(self, configs=configs, epochs=epochs)

    def committed(self, index: LogIndex) -> Record:
        """Sets before the last committed one are no longer needed."""
        settled = [config for config in self.configs if config.index <= index]
        if len(settled) < 2:
            return self
        return msgspec.structs.replace(self, configs=(settled[-1], *self.configs[len(settled) :]))

    def as_of(self, index: LogIndex) -> Record:
        """The record for a snapshot of this entry. If the members of that time are no longer recorded, a newer
        committed set is used."""
        configs = [config for config in self.configs if config.index <= index][-1:] or list(self.configs[:1])
        return Record(tuple(configs), tuple(start for start in self.epochs if start.index <= index))


_decoder = msgspec.msgpack.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """Raises ValueError if it is too large for the hard state."""
    data = msgspec.msgpack.encode(record)
    if len(data) > RECORD_BYTES_MAX:
        raise ValueError(f"members and epochs take {len(data)} bytes, more than {RECORD_BYTES_MAX}")
    return data


def decode_record(data: bytes) -> Record:
    return _decoder.decode(data)


def check_members(members: Sequence[Member]) -> str | None:
    """The reason why these cannot be the voters of a cluster; None if they can."""
    names = [member.name for member in members]
    if not names:
        return "a cluster has at least one primary"
    if len(set(names)) != len(names):
        return "a primary is named twice"
    if len(names) > MEMBERS_MAX:
        return f"a cluster has at most {MEMBERS_MAX} primaries"
    return None


def first_state(members: Sequence[Member]) -> HardState:
    """The first state of a store whose cluster begins with these voters. It must be saved before `Replica.recovered`,
    on all of them, and only if all are there and empty or the operator requests it (R21): a broker that lost its store
    and begins like this may vote twice."""
    reason = check_members(members)
    if reason is not None:
        raise ValueError(reason)
    config = Config(LogIndex(0), Term(0), Membership(tuple(members)))
    return HardState(membership=encode_record(Record(configs=(config,))))
