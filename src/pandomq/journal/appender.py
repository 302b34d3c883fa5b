"""The end of the log: entries come in, groups of them go out to the open segment.

What was appended between two calls of `sync` is a group: one write of bodies, one of table slots, one sync. The disk
may join groups that wait for it; completions come in order. Everything in memory happens at once: an entry has its
index and can be read before the disk has heard of it.

Callers ensure that terms never go back, and that payloads are not changed afterwards.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from pandomq.ids import LogIndex, Term
from pandomq.journal.chain import ChainPoints
from pandomq.journal.effects import Effect, FileName, Lane, Resize, Result, SyncFile
from pandomq.journal.events import Durable, Entry, Event
from pandomq.journal.layout import Identity, body_offset, file_seed
from pandomq.journal.limits import ENTRY_BYTES_MAX, Fsync, JournalSettings
from pandomq.journal.open_segment import OpenSegment
from pandomq.journal.outbox import Outbox
from pandomq.journal.segment import Catalogue, Segment
from pandomq.journal.spares import Spares
from pandomq.journal.terms import Terms


class Group:
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
        """The place of the effect after which the group is durable."""
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
        outbox: Outbox,
        catalogue: Catalogue,
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
        self._groups: deque[Group] = deque()
        """Closed and not yet durable, in order."""
        self._unfiled: deque[Group] = deque()
        """Those of them whose file is still being made."""
        self._held: list[Group] = []
        """Closed while `holding`, and not among the others."""
        self._unsynced: dict[FileName, None] = {}
        """Written since they were synced, where the policy does not sync them by itself."""
        self._marked_index = 0
        self._syncing = 0
        self.now_ms = 0
        """As of the last tick, or later."""
        self._synced_ms = 0
        self._moved_ms = 0
        """When the disk last did something for the log."""
        self.last_index = self.last_term = self.chain = 0
        self.durable_index = 0
        """As the fsync policy has it."""
        self.synced_index = 0
        """Really on the disk."""
        self.appended_bytes = 0
        """Handed over for a sync, since the start."""
        self.pending_bytes = 0
        """Handed over for a sync, and not yet durable."""
        self.opened_number = 0
        """The last segment that has entries on the disk."""
        self.holding = False
        """While a tail is being cut off, what is appended after it waits."""
        self.on_idle: Callable[[], None] = lambda: None
        self.on_opened: Callable[[int], None] = lambda number: None
        """Called with the number of a segment once it has entries on the disk."""
        self.on_synced: Callable[[], None] = lambda: None
        spares.on_ready = self._file_ready

    def begin(self, last_index: int, last_term: int, chain: int, open_segment: OpenSegment | None) -> None:
        """Where recovery found the end of the log; all of it is on the disk."""
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
            raise ValueError(f"an entry has at most {ENTRY_BYTES_MAX} bytes")
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
        """What was appended is to be made durable."""
        if self._open is not None and self._open.group_count:
            self._close_group()
            if self._open.half_full:
                self._spares.prepare()

    def unwritten(self, first_index: int) -> Iterator[Entry]:
        """Entries from this index on that are in memory only because the disk may not have them yet."""
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
        group = Group(segment, self.last_index + 1 - count, self.last_index, size_bytes, chunks)
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

    def _issue(self, group: Group) -> None:
        if self.holding:
            self._held.append(group)
            return
        group.issued_ms = self.now_ms
        self._groups.append(group)
        if self._unfiled or not self._spares.is_ready(group.segment.number):
            self._unfiled.append(group)
        else:
            self._send(group)

    def _send(self, group: Group) -> None:
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
        """The log ends here from now on. What is appended next goes to a segment of its own, and no further than memory
        until `release`: the disk must have forgotten the old entries before it gets others in their place."""
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
        """Nothing that was closed is on its way to the disk."""
        return not self._groups

    # Time.

    @property
    def waiting_since_ms(self) -> int | None:
        """Since when the disk does not move: when the oldest group that is not durable was meant for it (it may have
        had no file for it yet), or when it was last done with one. A disk that is slow is not one that stalls."""
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
        # With it the disk can prove what was synced, even if nothing follows. It need not be synced itself.
        self._marked_index = self.synced_index
        self._outbox.put(Lane.LOG, place.mark(self.synced_index))

    def flush(self) -> None:
        """What is durable as the policy has it is to be synced, whatever the policy."""
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
        """What makes the end of the log provable before the process goes; after the last group."""
        place = self._open
        if place is None or not place.segment.positions:
            return []
        file = place.segment.file
        return [*map(SyncFile, self._unsynced), place.mark(self.durable_index), SyncFile(file)]
