"""The end of the log: it takes entries, and writes groups of them to the open segment.

The entries between two calls of `sync` are a group: one write of bodies, one of table slots, one sync. The disk may
join waiting groups; completions come in order. Memory is updated at once: an entry has its index and can be read before
it is written.

Callers must ensure that terms never decrease, and that payloads do not change afterwards.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from pandomq.ids import LogIndex, Term
from pandomq.journal.chain import ChainPoints
from pandomq.journal.effects import Effect, FileName, Lane, Resize, Result, SyncFile
from pandomq.journal.events import Durable, Entry, Event
from pandomq.journal.limits import ENTRY_BYTES_MAX, Fsync, JournalSettings
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.segments.layout import Identity, body_offset, file_seed
from pandomq.journal.segments.open_segment import OpenSegment
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.journal.segments.spares import Spares
from pandomq.journal.terms import Terms


class CommitGroup:
    """Entries that become durable together."""

    __slots__ = ("chunks", "effects", "first_index", "issued_ms", "last_index", "safe_at", "segment", "size_bytes")

    def __init__(
        self, segment: Segment, first_index: int, last_index: int, size_bytes: int, chunks: list[bytes]
    ) -> None:
        self.segment = segment
        self.first_index = first_index
        self.last_index = last_index
        self.chunks = chunks
        self.size_bytes = size_bytes
        self.effects: list[Effect] = []
        self.safe_at = 0
        """The number of the effect after which the group is durable."""
        self.issued_ms = 0


class Appender:
    __slots__ = (
        "_catalogue",
        "_emit",
        "_groups",
        "_held",
        "_identity",
        "_marked_index",
        "_moved_ms",
        "_open",
        "_outbox",
        "_points",
        "_settings",
        "_spares",
        "_synced_ms",
        "_syncing",
        "_terms",
        "_unfiled",
        "_unsynced",
        "appended_bytes",
        "chain",
        "durable_index",
        "holding",
        "last_index",
        "last_term",
        "now_ms",
        "on_idle",
        "on_opened",
        "on_synced",
        "opened_number",
        "pending_bytes",
        "synced_index",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        outbox: DiskRequests,
        catalogue: SegmentList,
        terms: Terms,
        points: ChainPoints,
        spares: Spares,
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._outbox = outbox
        self._catalogue = catalogue
        self._terms = terms
        self._points = points
        self._spares = spares
        self._emit = emit
        self._open: OpenSegment | None = None
        self._groups: deque[CommitGroup] = deque()
        """Closed and not yet durable, in order."""
        self._unfiled: deque[CommitGroup] = deque()
        """The groups of these whose file is still being created."""
        self._held: list[CommitGroup] = []
        """Groups that were closed while `holding`, not yet in the other lists."""
        self._unsynced: dict[FileName, None] = {}
        """Files with writes since their last sync, for a policy that does not sync them by itself."""
        self._marked_index = 0
        self._syncing = 0
        self.now_ms = 0
        """The time of the last tick, or later."""
        self._synced_ms = 0
        self._moved_ms = 0
        """The time at which the disk last made progress for the log."""
        self.last_index = self.last_term = self.chain = 0
        self.durable_index = 0
        """The last durable entry under the fsync policy."""
        self.synced_index = 0
        """The last entry that is synced to disk."""
        self.appended_bytes = 0
        """Bytes handed over for a sync, since the start."""
        self.pending_bytes = 0
        """Bytes handed over for a sync, and not yet durable."""
        self.opened_number = 0
        """The last segment that has entries on disk."""
        self.holding = False
        """While a tail is being cut off, later entries wait in memory."""
        self.on_idle: Callable[[], None] = lambda: None
        self.on_opened: Callable[[int], None] = lambda number: None
        """Called with the number of a segment once it has entries on disk."""
        self.on_synced: Callable[[], None] = lambda: None
        spares.on_ready = self._file_ready

    def begin(self, last_index: int, last_term: int, chain: int, open_segment: OpenSegment | None) -> None:
        """Sets the end of the log that recovery found; all of it is on disk."""
        self.last_index = self.durable_index = self.synced_index = last_index
        self.last_term = last_term
        self.chain = chain
        self._open = open_segment
        self.opened_number = self._catalogue.newest_segment

    # Entries.

    def extend(self, term: int, payloads: Sequence[bytes]) -> LogIndex:
        """Returns the index of the last."""
        assert term >= self.last_term, "terms never go back"
        if max(map(len, payloads), default=0) > ENTRY_BYTES_MAX:
            raise ValueError(f"an entry is limited to {ENTRY_BYTES_MAX} bytes")
        taken, count = 0, len(payloads)
        if count and term != self.last_term:
            self._terms.note(self.last_index + 1, term)
        while taken < count:
            place = self._open or self._roll()
            self.last_term = term
            end = place.pack(payloads, taken, self.last_index + 1, term, self.synced_index, self._points)
            self.last_index += end - taken
            self.chain = place.segment.chain_after
            taken = end
            if taken < count:
                self._close_group(sealing=True)
                self._open = None
        return LogIndex(self.last_index)

    def sync(self) -> None:
        """Requests that the appended entries be made durable."""
        if self._open is not None and self._open.group_count:
            self._close_group()
            if self._open.half_full:
                self._spares.prepare()

    def unwritten(self, first_index: int) -> Iterator[Entry]:
        """Entries from this index on that may not be on disk yet, from memory."""
        for group in [*self._groups, *self._held]:
            for index in range(max(first_index, group.first_index), group.last_index + 1):
                yield self._entry(index, group.chunks[(index - group.first_index) * 2 + 1])
        if self._open is not None:
            chunks = self._open.chunks
            first = self.last_index + 1 - self._open.group_count
            for index in range(max(first_index, first), self.last_index + 1):
                yield self._entry(index, chunks[(index - first) * 2 + 1])

    def _entry(self, index: int, payload: bytes) -> Entry:
        term = self._terms.at(index)
        assert term is not None
        return Entry(LogIndex(index), Term(term), payload)

    # Groups.

    def _roll(self) -> OpenSegment:
        slot_count = self._settings.slot_count
        number = self._spares.take()
        segment = Segment(number, self.last_index + 1, self.chain, slot_count, body_offset(slot_count))
        self._catalogue.add(segment)
        seed = file_seed(self._identity.cluster_id, number)
        self._open = OpenSegment(segment, seed, self._settings.segment_bytes, self.last_term)
        return self._open

    def _close_group(self, *, sealing: bool = False) -> None:
        place = self._open
        assert place is not None
        count, size_bytes = place.group_count, place.group_bytes
        writes, chunks = place.close_group()
        segment = place.segment
        group = CommitGroup(segment, self.last_index + 1 - count, self.last_index, size_bytes, chunks)
        group.effects += writes
        if sealing:
            group.effects.append(place.seal())
        if self._settings.fsync is Fsync.ALWAYS:
            group.effects.append(SyncFile(segment.file))
        group.safe_at = len(group.effects) - 1
        if sealing:
            group.effects.append(Resize(segment.file, segment.end))
        self.pending_bytes += size_bytes
        self.appended_bytes += size_bytes
        self._issue(group)

    def _issue(self, group: CommitGroup) -> None:
        if self.holding:
            self._held.append(group)
            return
        group.issued_ms = self.now_ms
        self._groups.append(group)
        if self._unfiled or not self._spares.is_ready(group.segment.number):
            self._unfiled.append(group)
        else:
            self._send(group)

    def _send(self, group: CommitGroup) -> None:
        if self._settings.fsync is not Fsync.ALWAYS:
            self._unsynced[group.segment.file] = None
        for place, effect in enumerate(group.effects):
            self._outbox.put(Lane.LOG, effect, self._safe if place == group.safe_at else None)

    def _file_ready(self) -> None:
        while self._unfiled and self._spares.is_ready(self._unfiled[0].segment.number):
            self._send(self._unfiled.popleft())

    def _safe(self, _result: Result) -> None:
        # Requests of the log's lane complete in order, so it is the oldest group.
        group = self._groups.popleft()
        self._moved_ms = self.now_ms
        self.pending_bytes -= group.size_bytes
        if self._settings.fsync is Fsync.ALWAYS:
            self._advance_synced(group.last_index)
        if group.last_index > self.durable_index:
            self.durable_index = group.last_index
            self._emit(Durable(LogIndex(group.last_index)))
        if not self._groups:
            self.on_idle()

    def _advance_synced(self, index: int) -> None:
        if index <= self.synced_index:
            return
        self.synced_index = index
        stored = self._catalogue.find(index)
        if stored is not None and stored.number > self.opened_number:
            self.opened_number = stored.number
            self.on_opened(stored.number)
        self.on_synced()

    # Cutting off a tail.

    def cut(self, last_index: int, last_term: int, chain: int) -> None:
        """Cuts the log off after this entry. Later entries go to a new segment, and stay in memory until `release`: the
        disk must have removed the old entries before it gets others in their place."""
        assert not self.holding
        self.sync()
        for group in self._groups:
            group.last_index = min(group.last_index, last_index)
        self.holding = True
        self._open = None
        self.last_index, self.last_term, self.chain = last_index, last_term, chain
        self.durable_index = min(self.durable_index, last_index)
        self.synced_index = min(self.synced_index, last_index)
        self._marked_index = min(self._marked_index, last_index)
        self.opened_number = self._catalogue.newest_segment

    def release(self) -> None:
        assert self.holding and not self._groups
        self.holding = False
        held, self._held = self._held, []
        for group in held:
            self._issue(group)

    @property
    def idle(self) -> bool:
        """No closed group is waiting for the disk."""
        return not self._groups

    # Time.

    @property
    def waiting_since_ms(self) -> int | None:
        """The time since when the disk makes no progress: the later of the time when the oldest non-durable group was
        ready (it may have had no file yet) and the last completion. A slow disk is not a stalled disk."""
        return max(self._groups[0].issued_ms, self._moved_ms) if self._groups else None

    def tick(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._spares.tick()
        place, late_ms = self._open, now_ms - self._synced_ms - self._settings.fsync_interval_ms
        if self._settings.fsync is Fsync.INTERVAL and late_ms >= 0 and not self._syncing:
            self._synced_ms = now_ms
            self.flush()
        if place is None or place.segment.first_index > self.synced_index or self._marked_index >= self.synced_index:
            return
        if self._groups or self.holding:
            return
        # This lets the disk prove what was synced, even if nothing follows. It need not be synced itself.
        self._marked_index = self.synced_index
        self._outbox.put(Lane.LOG, place.mark(self.synced_index))

    def flush(self) -> None:
        """Requests a sync of everything that is durable only under the policy."""
        if not self._unsynced:
            return
        files, self._unsynced = list(self._unsynced), {}
        index = self.durable_index

        def synced(_result: Result) -> None:
            self._syncing -= 1
            # A tail may have been cut off in the meantime.
            self._advance_synced(min(index, self.durable_index))

        self._syncing += 1
        for file in files:
            self._outbox.put(Lane.LOG, SyncFile(file), synced if file is files[-1] else None)

    def closing(self) -> list[Effect]:
        """Effects that make the end of the log provable before the process ends; to be called after the last group."""
        place = self._open
        if place is None or not place.segment.positions:
            return []
        file = place.segment.file
        return [*map(SyncFile, self._unsynced), place.mark(self.durable_index), SyncFile(file)]
