"""The record that is synced before the broker acts on anything in it: term, vote, epoch, membership.

It is held twice in one small file. A new state is written and synced as the first copy, then its owner is notified,
then it becomes the second copy. So a torn first copy means that the new state had no effect yet, and the second, older
copy is valid; a first copy that is damaged later is replaced by the equal second one. Both copies are never being
written at the same time.

copy magic 8s, version u32, length u32, counter u64, checksum u32, content (msgpack)
"""

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from pandomq.hard_state import HardState
from pandomq.journal.effects import Lane, SyncFile, Write
from pandomq.journal.faults import unknown_version
from pandomq.journal.limits import FOUNDING_BYTES_MAX, STATE_COPY_BYTES
from pandomq.journal.names import STATE
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.work import Task, Work, perform
from pandomq.kernel import crc32

VERSION: Final = 2
MAGIC: Final = b"PANDOSTA"
HEAD: Final = struct.Struct("<8sIIQI")
COPY_OFFSETS: Final = (0, STATE_COPY_BYTES)


class StoreState(msgspec.Struct, frozen=True):
    """The contents of the file: the store's identity, the owner's hard state, and the journal's own notes."""

    cluster_id: str
    """Empty as long as the store belongs to no cluster."""
    node_name: str
    hard: HardState = HardState()
    segment_newest: int = 0
    """A segment with this number is in use; or it was in use, and everything in it is below a snapshot."""
    cut_from: int = 0
    """Entries from this index on are being cut off; 0 if none are."""
    replaced_by: int = 0
    """A received snapshot of this entry replaces the store; 0 if none does."""
    cleared: bool = False
    """The old store was removed before that."""
    aside: int = 0
    """The store is being set aside under this number; 0 if it is not."""
    begins_with: bytes = b""
    """While the store is being set aside: the membership of the empty one, which keeps epoch, term and vote. Empty if
    it must not keep them either."""
    emptied: bool = False
    """The store before this one was set aside, or its cluster existed before it: this store is not the cluster's
    beginning."""
    store_id: str = ""
    """A random id from its creation: a store that was lost and created again has another one."""
    founding: bytes = b""
    """How the cluster began, or is about to. Opaque here."""
    unsynced_boot: str = ""
    """The boot of the machine under which it is written without a sync of every entry; empty if each entry is
    synced."""
    doubtful: bool = False
    """Entries or votes that were sent may be missing, and the owner has not saved its conclusions yet."""
    clock_ahead_ms: int = 0
    """How much this machine's clock is ahead of the time in the log's entries. Older brokers do not know the field, and
    drop it; then the clock counts as right."""

    def __post_init__(self) -> None:
        if len(self.founding) > FOUNDING_BYTES_MAX:
            raise ValueError(f"a founding record has at most {FOUNDING_BYTES_MAX} bytes")


def encode_copy(state: StoreState, counter: int) -> bytes:
    content = msgspec.msgpack.encode(state)
    assert HEAD.size + len(content) <= STATE_COPY_BYTES
    head = HEAD.pack(MAGIC, VERSION, len(content), counter, 0)
    return HEAD.pack(MAGIC, VERSION, len(content), counter, crc32(content, crc32(head))) + content


def decode_copy(data: bytes) -> tuple[int, StoreState] | None:
    """Counter and state; None unless the copy is intact. Raises VersionFault for a later version."""
    if len(data) < HEAD.size:
        return None
    magic, version, length, counter, checksum = HEAD.unpack_from(data)
    content = data[HEAD.size : HEAD.size + length]
    if magic != MAGIC or crc32(content, crc32(HEAD.pack(magic, version, length, counter, 0))) != checksum:
        return None
    if version > VERSION:
        raise unknown_version(STATE, version, VERSION)
    return counter, msgspec.msgpack.decode(content, type=StoreState)


class StateStore:
    """Saves states one after the other; a newer waiting state replaces an older waiting one."""

    __slots__ = ("_counter", "_outbox", "_task", "_waiting", "state")

    def __init__(self, outbox: DiskRequests, state: StoreState, counter: int) -> None:
        self._outbox = outbox
        self._counter = counter
        self._task: Task[None] | None = None
        self._waiting: list[Callable[[], None]] = []
        self.state = state

    def save(self, state: StoreState, saved: Callable[[], None] | None = None) -> None:
        """Calls `saved` when the state would survive a crash."""
        self.state = state
        self._waiting.append(saved if saved is not None else _nothing)
        if self._task is None or self._task.over:
            self._task = Task(self._outbox, Lane.LOG, self._saving(), lambda _: None)
            self._task.start()

    def _saving(self) -> Work[None]:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            self._counter += 1
            data = encode_copy(self.state, self._counter)
            first, second = (Write(STATE, offset, (data,)) for offset in COPY_OFFSETS)
            yield from perform(first, SyncFile(STATE))
            for saved in waiting:
                saved()
            yield from perform(second, SyncFile(STATE))


def _nothing() -> None:
    pass
