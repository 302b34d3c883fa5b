"""The configuration, for secondaries whose next entry is no longer in the log, or far from its end: a snapshot without
messages, made in memory and sent in the parts of which a store is put together (`journal.replacement`).

One is made on request, of the state after the last entry of the log, between two batches; it is sent to no broker
before that entry is committed. It serves all requests while the log after it is not long, and is dropped when there are
no more requests. Its size is that of the replicated state, which is bounded (R19).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.limits import PART_BYTES_MAX, SENDING_IDLE_MS
from pandomq.journal.segments.layout import Identity
from pandomq.journal.snapshots.snapshot_image import SnapshotImage
from pandomq.journal.snapshots.snapshot_sender import KIND_SNAPSHOT, PART
from pandomq.limits import MIB
from pandomq.node.log.snapshots import PIECE_BYTES, PIECE_KIND

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.journal.journal import Journal

LOG_BYTES_MAX: Final = 256 * MIB
"""A secondary that is further behind gets the configuration anew: it is less than the log, of which it needs little."""
REUSE_BYTES_MAX: Final = LOG_BYTES_MAX // 4
"""A configuration serves further requests as long as the log after it is not longer."""


class ConfigurationPart(msgspec.Struct, frozen=True):
    source: str
    index: LogIndex
    term: Term
    data: bytes
    last: bool


class Made(msgspec.Struct, frozen=True):
    name: str
    index: LogIndex
    term: Term
    file: bytes


class ConfigurationSource:
    def __init__(self, name: str, journal: Journal, broker: Broker) -> None:
        self._name = name
        self._journal = journal
        self._broker = broker
        self._wanted = False
        self._made: Made | None = None
        self._count = 0
        self._now_ms = self._asked_ms = 0
        self.log_bytes_max = LOG_BYTES_MAX

    # Requests.

    def check(self, first_index: int) -> None:
        """Raises LookupError if so much of the log is to be read for a secondary that the configuration is less."""
        if self._journal.bytes_after(LogIndex(first_index - 1)) > self.log_bytes_max:
            raise LookupError("the configuration is smaller than the log")

    def read(self, name: str, number: int) -> ConfigurationPart | None:
        """A part of the one of this name, or of one that serves. None if there is none; it is made then, if any will
        do."""
        self._asked_ms = self._now_ms
        made = self._made
        if not name and (made is None or self._journal.bytes_after(made.index) > REUSE_BYTES_MAX):
            self._wanted = True
            return None
        if made is None or made.index > self._journal.commit_index or (name and name != made.name):
            return None
        start = number * PART_BYTES_MAX
        if start >= len(made.file):
            return None
        data = PART.pack(KIND_SNAPSHOT, 0, start) + made.file[start : start + PART_BYTES_MAX]
        return ConfigurationPart(made.name, made.index, made.term, data, start + PART_BYTES_MAX >= len(made.file))

    # Between batches of a root.

    def work(self, now_ms: int, *, is_root: bool) -> None:
        self._now_ms = now_ms
        if self._wanted and is_root:
            if self._broker.at_rest:
                self._make()
            else:
                self._broker.deferral.pause()
        elif self._made is not None and now_ms - self._asked_ms > SENDING_IDLE_MS:
            self._made = None

    def _make(self) -> None:
        self._wanted = False
        index = self._journal.last_index
        term = self._journal.term_at(index)
        assert term is not None, "the last entry is known"
        image = SnapshotImage(
            Identity(ClusterId(self._journal.store_identity.state.cluster_id), NodeName(self._name)), index, term
        )
        stream = b"".join(self._broker.configuration())
        for start in range(0, len(stream), PIECE_BYTES):
            image.add(PIECE_KIND, stream[start : start + PIECE_BYTES])
        self._count += 1
        # The name has the broker, the state, the term, and a count: no other configuration has all of them in common
        # with it.
        name = f"{self._name}-{index}-{term}-configuration-{self._count}"
        self._made = Made(name, index, term, image.finish())
