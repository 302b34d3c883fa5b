"""The record that is synced before anything in it is spoken: term, vote, epoch, membership.

It is held twice in one small file. A new state is written and synced as the first copy, then its owner is told, then it
becomes the second copy. So a torn first copy means that nobody has heard of the new state, and the second, older one
holds; a first copy that went bad later is replaced by the equal second one. Never are both being written.

    copy    magic 8s, version u32, length u32, counter u64, checksum u32, content (msgpack)
"""

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from pandomq.journal.effects import Lane, SyncFile, Write
from pandomq.journal.faults import unknown_version
from pandomq.journal.limits import FOUNDING_BYTES_MAX, MEMBERSHIP_BYTES_MAX, STATE_COPY_BYTES
from pandomq.journal.names import STATE
from pandomq.journal.outbox import Outbox
from pandomq.journal.work import Task, Work, perform
from pandomq.kernel import crc32

VERSION: Final = 1
MAGIC: Final = b"PANDOSTA"
HEAD: Final = struct.Struct("<8sIIQI")
COPY_OFFSETS: Final = (0, STATE_COPY_BYTES)


class HardState(msgspec.Struct, frozen=True):
    epoch: int = 0
    epoch_id: str = ""
    """Tells apart forced promotions that took the same number."""
    term: int = 0
    vote: str | None = None
    membership: bytes = b""
    """Opaque here."""

    def __post_init__(self) -> None:
        if len(self.membership) > MEMBERSHIP_BYTES_MAX:
            raise ValueError(f"a membership record has at most {MEMBERSHIP_BYTES_MAX} bytes")


class StoreState(msgspec.Struct, frozen=True):
    """What the file holds: whose store it is, the owner's hard state, and what the journal notes for itself."""

    cluster_id: str
    """Empty as long as it belongs to none."""
    node_name: str
    hard: HardState = HardState()
    segment_newest: int = 0
    """A segment with this number is in use, or was, and everything in it is below a snapshot."""
    cut_from: int = 0
    """Entries from this index on are being cut off; 0 if none are."""
    replaced_by: int = 0
    """A snapshot of this entry, which has arrived, takes the place of the store; 0 if none does."""
    cleared: bool = False
    """The old store has gone before it."""
    aside: int = 0
    """The store is being set aside under this number; 0 if it is not."""
    emptied: bool = False
    """The store before this one was set aside, or its cluster was there before it: this is not the beginning."""
    store_id: str = ""
    """Drawn when it was made: one that was lost and made again is another."""
    founding: bytes = b""
    """How the cluster began, or is about to. Opaque here."""
    unsynced_boot: str = ""
    """The boot of the machine under which it is written without a sync of every entry; empty if each is synced."""
    doubtful: bool = False
    """Entries or votes that were spoken of may be missing, and the owner has not drawn its conclusions yet."""

    def __post_init__(self) -> None:
        if len(self.founding) > FOUNDING_BYTES_MAX:
            raise ValueError(f"a founding record has at most {FOUNDING_BYTES_MAX} bytes")


def encode_copy(state: StoreState, counter: int) -> bytes:
    content = msgspec.msgpack.encode(state)
    assert HEAD.size + len(content) <= STATE_COPY_BYTES
    head = HEAD.pack(MAGIC, VERSION, len(content), counter, 0)
    return HEAD.pack(MAGIC, VERSION, len(content), counter, crc32(content, crc32(head))) + content


def decode_copy(data: bytes) -> tuple[int, StoreState] | None:
    """Counter and state; None unless the copy is whole. Raises VersionFault for one from the future."""
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
    """Saves states one after the other; a newer one that is waiting takes the place of an older one."""

    __slots__ = ("_counter", "_outbox", "_task", "_waiting", "state")

    def __init__(self, outbox: Outbox, state: StoreState, counter: int) -> None:
        self._outbox = outbox
        self._counter = counter
        self._task: Task[None] | None = None
        self._waiting: list[Callable[[], None]] = []
        self.state = state

    def save(self, state: StoreState, saved: Callable[[], None] | None = None) -> None:
        """`saved` is called when the state would survive a crash."""
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
