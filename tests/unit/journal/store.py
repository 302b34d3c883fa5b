"""A journal on a simulated disk, its owner, and a model of their state as a second definition.

The owner keeps messages: each entry brings one and may release older ones; some of them are in pages instead of in
memory. It builds on an entry at once, as a root does, or when it is committed, as a backup does. Its state and the
journal's state after a crash are compared with a plain list of all entries that were ever appended.
"""

from __future__ import annotations

from random import Random

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.effects import FileName
from pandomq.journal.events import (
    Closed,
    Durable,
    EntriesRead,
    Event,
    FlawFound,
    PageFetched,
    Recovered,
    Replayed,
    RestoredPiece,
    SnapshotBegins,
    SnapshotFailed,
    SnapshotSaved,
    Truncated,
)
from pandomq.journal.journal import Journal
from pandomq.journal.limits import Fsync, JournalSettings
from pandomq.journal.paging.page_file import PagePlace, StoredPage
from pandomq.journal.paging.pages import Pages
from pandomq.sim.disks.disk import NEVER_MS, SimDisk
from pandomq.sim.disks.files import Loss

CLUSTER = ClusterId("6f2c6a0e-0a53-4d8e-9a53-0d5b7a1f9c11")
NODE = NodeName("n1")
SMALL = JournalSettings(
    segment_bytes=8 * 1024,
    snapshot_log_bytes=16 * 1024,
    disk_free_bytes_min=0,
    reserve_bytes=4 * 1024,
    replay_chunk_bytes=4 * 1024,
    bulk_chunk_bytes=1024,
    bulk_sync_bytes=4 * 1024,
    page_file_bytes=8 * 1024,
)


REPLAYED_MAX = 30
"""Messages that the owner takes into memory while it replays the log."""


class Sheet:
    """Messages that are not in memory but in a page."""

    def __init__(self, page: StoredPage, numbers: set[int]) -> None:
        self.page = page
        self.numbers = numbers
        """Those that are still alive."""


class Owner:
    """The state that the log builds: live messages by number, in memory or in pages."""

    def __init__(self, pages: Pages | None = None) -> None:
        self._pages = pages
        self.applied_index = 0
        self.memory: dict[int, bytes] = {}
        self.sheets: list[Sheet] = []

    @property
    def numbers(self) -> list[int]:
        return sorted([*self.memory, *(number for sheet in self.sheets for number in sheet.numbers)])

    def apply(self, index: int, payload: bytes) -> None:
        released, body = msgspec.msgpack.decode(payload, type=tuple[list[int], bytes])
        for number in released:
            self.memory.pop(number, None)
        for sheet in list(self.sheets):
            sheet.numbers.difference_update(released)
            if not sheet.numbers:
                self.forget(sheet)
        self.memory[index] = body
        self.applied_index = index

    def forget(self, sheet: Sheet) -> None:
        assert self._pages is not None
        self.sheets.remove(sheet)
        self._pages.free(sheet.page)

    def page_out(self, count: int) -> None:
        """So many of the newest messages leave memory."""
        numbers = sorted(self.memory)[-count:]
        if numbers and self._pages is not None:
            blob = msgspec.msgpack.encode({number: self.memory.pop(number) for number in numbers})
            self.sheets.append(Sheet(self._pages.put(blob), set(numbers)))

    def loaded(self, page: StoredPage, blob: bytes) -> None:
        for sheet in [sheet for sheet in self.sheets if sheet.page is page]:
            bodies = decode_blob(blob)
            self.memory.update({number: bodies[number] for number in sheet.numbers})
            self.forget(sheet)

    def encode(self) -> bytes:
        sheets = [(tuple(sheet.page.place), sorted(sheet.numbers)) for sheet in self.sheets]
        return msgspec.msgpack.encode((self.applied_index, self.memory, sheets))

    def decode(self, data: bytes) -> None:
        assert self._pages is not None
        kind = tuple[int, dict[int, bytes], list[tuple[tuple[int, int, int, int], set[int]]]]
        self.applied_index, self.memory, sheets = msgspec.msgpack.decode(data, type=kind)
        self.sheets = [Sheet(self._pages.adopt(PagePlace(*place)), numbers) for place, numbers in sheets]


def decode_blob(blob: bytes) -> dict[int, bytes]:
    return msgspec.msgpack.decode(blob, type=dict[int, bytes])


def encode_entry(released: list[int], body: bytes) -> bytes:
    return msgspec.msgpack.encode((released, body))


class Store:
    """One disk, and the journals that come and go on it."""

    def __init__(
        self,
        seed: int = 0,
        settings: JournalSettings = SMALL,
        *,
        early: bool = True,
        told_late: bool = False,
        capacity_bytes: int = 2**40,
    ) -> None:
        self.early = early
        self.told_late = told_late
        """Of writes the disk tells with what waits behind them, see `SimDisk.telling_ms`."""
        self.disk = SimDisk(Random(seed), capacity_bytes=capacity_bytes)
        self.settings = settings
        self.now_ms = 1
        self.history: list[tuple[int, bytes]] = []
        """(term, payload) of every entry of the log as it should be."""
        self.older: list[tuple[int, bytes]] | None = None
        """The same before a cut of which the disk may not know yet."""
        self.durable = 0
        self.proven = 0
        """The durable end when the last group was written, which that group's slots contain."""
        self.hard_state = HardState()
        self.boot_id = "first"
        """Of the machine."""
        self.start()

    def start(self) -> None:
        """A new process; nothing is open yet."""
        self.journal = Journal(self.settings, node_name=NODE, new_cluster_id=CLUSTER, boot_id=self.boot_id)
        self.owner = Owner(self.journal.pages)
        self.recovered: Recovered | None = None
        self.replayed: list[tuple[int, int, bytes]] = []
        self.events: list[Event] = []
        self.closed = False
        self.snapshot_begun = 0
        self.snapshot_active = False
        self.fetched: dict[StoredPage, bytes] = {}
        self.looked_at: set[StoredPage] = set()
        self.wanted: set[StoredPage] = set()
        self.journal.open()
        self.pump()

    # The disk.

    def pump(self) -> None:
        self.disk.submit(self.journal.take_requests(), self.now_ms)
        for event in self.journal.take_events():
            self.events.append(event)
            self.hear(event)

    def step(self) -> bool:
        """Lets the disk answer once; False if it has nothing to do."""
        due_ms = self.disk.telling_ms if self.told_late else self.disk.next_ms
        if due_ms == NEVER_MS:
            return False
        self.now_ms = max(self.now_ms, due_ms)
        for completion in self.disk.take_completions(self.now_ms):
            self.journal.completed(completion)
            self.pump()
        return True

    def settle(self) -> None:
        """Until the disk has nothing left to do."""
        while self.step():
            pass

    def open(self) -> Recovered:
        self.settle()
        assert self.recovered is not None
        return self.recovered

    def hear(self, event: Event) -> None:
        match event:
            case SnapshotBegins():
                self.owner = Owner(self.journal.pages)
            case RestoredPiece(_, data):
                self.owner.decode(data)
            case Replayed(entries):
                for entry in entries:
                    self.replayed.append((entry.index, entry.term, entry.payload))
                    self.owner.apply(entry.index, entry.payload)
                    if len(self.owner.memory) > REPLAYED_MAX:
                        self.owner.page_out(5)
            case Recovered():
                self.recovered = event
                if event.damage is None:
                    self.journal.replayed()
                    self.journal.commit(event.last_index)
            case Durable(index):
                self.durable = index
                self.apply_up_to(index)
                self.journal.commit(index)
            case PageFetched(page, blob):
                self.fetched[page] = blob
                if page not in self.looked_at:
                    self.owner.loaded(page, blob)
            case Truncated():
                self.older = None
            case SnapshotSaved() | SnapshotFailed():
                self.snapshot_active = False
            case Closed():
                self.closed = True
            case _:
                pass
        self.disk.submit(self.journal.take_requests(), self.now_ms)

    # The owner.

    def apply_up_to(self, last_index: int) -> None:
        for index in range(self.owner.applied_index + 1, last_index + 1):
            self.owner.apply(index, self.history[index - 1][1])

    def append(self, *bodies: bytes, released: list[int] | None = None, term: int | None = None) -> None:
        term = term if term is not None else max(1, self.journal.last_term)
        payloads = [encode_entry((released or []) if place == 0 else [], body) for place, body in enumerate(bodies)]
        assert self.journal.last_index == len(self.history)
        self.proven = self.journal.synced_index
        self.history += [(term, payload) for payload in payloads]
        assert self.journal.extend(Term(term), payloads) == len(self.history)
        if self.early:
            self.apply_up_to(len(self.history))
        self.pump()

    def sync(self) -> None:
        self.journal.sync()
        self.pump()

    def save(self) -> None:
        """Everything so far is durable, and the disk knows."""
        self.sync()
        self.settle()

    def snapshot(self) -> None:
        self.snapshot_begun = self.owner.applied_index
        self.snapshot_active = True
        pages = [sheet.page for sheet in self.owner.sheets]
        writer = self.journal.begin_snapshot(LogIndex(self.owner.applied_index), pages)
        writer.add(7, self.owner.encode())
        writer.finish()
        self.pump()

    def tick(self, pass_ms: int = 1_000) -> None:
        self.now_ms += pass_ms
        self.journal.tick(self.now_ms)
        self.pump()

    def close(self) -> None:
        self.journal.close()
        self.pump()
        self.settle()
        assert self.closed

    # Reading.

    def heard(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    def read_all(self) -> list[tuple[int, int, bytes]]:
        """Every entry that is held whole."""
        found: list[tuple[int, int, bytes]] = []
        index = self.journal.first_index
        while index <= self.journal.last_index:
            self.journal.read(LogIndex(index), 3_000)
            self.pump()
            self.settle()
            event = self.heard(EntriesRead)[-1]
            assert event.flaw is None and event.entries
            found += [(entry.index, entry.term, entry.payload) for entry in event.entries]
            index = LogIndex(found[-1][0] + 1)
        return found

    def read_live(self) -> dict[int, bytes]:
        """The body of every live message, by its number."""
        self.looked_at = {sheet.page for sheet in self.owner.sheets}
        self.fetched.clear()
        for page in self.looked_at:
            self.journal.pages.fetch(page)
        self.pump()
        self.settle()
        found = dict(self.owner.memory)
        for sheet in self.owner.sheets:
            bodies = decode_blob(self.fetched[sheet.page])
            found.update({number: bodies[number] for number in sheet.numbers})
        self.looked_at = set()
        return found

    # Pages.

    def page_out(self, count: int) -> None:
        self.owner.page_out(count)
        self.pump()

    def load(self, place: int) -> None:
        """One of the pages comes back, some time."""
        wanted = [sheet for sheet in self.owner.sheets if sheet.page not in self.wanted]
        if wanted:
            page = wanted[place % len(wanted)].page
            self.wanted.add(page)
            self.journal.pages.fetch(page)
            self.pump()

    # Crashes.

    def crash(self, loss: Loss = Loss.SOME) -> None:
        if self.recovered is not None and self.settings.fsync is not Fsync.ALWAYS and loss is not Loss.NONE:
            # The policy promises no more than what was really synced.
            self.durable = self.journal.synced_index
        self.disk.crash(loss)
        self.start()

    def check(self) -> None:
        """The journal has returned exactly its input."""
        recovered = self.open()
        # A crash tears and loses what was not synced; it damages nothing.
        assert recovered.damage is None and not recovered.flaws
        last = recovered.last_index
        assert last == self.journal.last_index
        if not (self.durable <= last <= len(self.history) and self._agrees(self.history)):
            # A cut that was not done yet may have left the old end, or what of it was cut so far.
            assert self.older is not None and last <= len(self.older), (last, self.durable, len(self.history))
            assert self._agrees(self.older)
            self.history = self.older
        self.older = None
        del self.history[last:]
        self.durable = last
        self.check_state()

    def _agrees(self, history: list[tuple[int, bytes]]) -> bool:
        snapshot_index = self.recovered.snapshot_index if self.recovered else 0
        expected = [(index, *history[index - 1]) for index in range(snapshot_index + 1, len(history) + 1)]
        return self.replayed == expected[: len(self.replayed)] and len(self.replayed) == (
            self.journal.last_index - snapshot_index
        )

    def check_state(self) -> None:
        expected = Owner()
        for index, (_, payload) in enumerate(self.history, start=1):
            expected.apply(index, payload)
        assert self.read_live() == expected.memory
        for index, term, payload in self.read_all():
            assert (term, payload) == self.history[index - 1]
        assert not self.heard(FlawFound)

    def files(self, kind: str) -> list[FileName]:
        return [file for file in self.disk.sizes() if file.startswith(kind)]

    def saved_snapshots(self) -> list[int]:
        return [event.index for event in self.heard(SnapshotSaved)]
