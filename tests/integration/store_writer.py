"""A process that writes a store until it is killed, and reports the durable part.

Every entry is a function of its index, so a reader of the store knows its expected content. Run with a directory and a
seed; it prints the durable index, one per line.
"""

from __future__ import annotations

import select
import sys
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.events import (
    Closed,
    Durable,
    Event,
    PageFetched,
    Recovered,
    Replayed,
    RestoredPiece,
    SnapshotSaved,
)
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.journal.paging.page_file import PagePlace, StoredPage
from pandomq.runtime.disk.disk import Disk

CLUSTER = ClusterId("0e8b7c52-6a53-4d8e-9a53-0d5b7a1f9c11")
SMALL = JournalSettings(
    segment_bytes=256 * 1024,
    snapshot_log_bytes=512 * 1024,
    disk_free_bytes_min=0,
    reserve_bytes=64 * 1024,
    bulk_chunk_bytes=16 * 1024,
    page_file_bytes=128 * 1024,
)
PAGED_FROM = 40
"""The number of messages that stay in memory; older ones are paged out, so many at a time."""


class Sheet(NamedTuple):
    page: StoredPage
    numbers: set[int]


State = tuple[int, dict[int, bytes], list[tuple[tuple[int, int, int, int], set[int]]]]


def payload_of(index: int) -> bytes:
    """The released messages, and a body. Every tenth message stays long."""
    gone = [number for number in (index - 20,) if number > 0 and number % 10]
    gone += [number for number in (index - 2000,) if number > 0 and not number % 10]
    random = Random(index)
    return msgspec.msgpack.encode((gone, random.randbytes(random.randint(0, 2000))))


class Keeper:
    """The owner of a store on a real disk."""

    def __init__(self, directory: Path, settings: JournalSettings = SMALL) -> None:
        self.journal = Journal(settings, node_name=NodeName("n1"), new_cluster_id=CLUSTER)
        self.disk = Disk(directory)
        self._ready = select.poll()
        self._ready.register(self.disk.fd, select.POLLIN)
        self.memory: dict[int, bytes] = {}
        self.sheets: list[Sheet] = []
        self.fetched: dict[StoredPage, bytes] = {}
        self.applied = 0
        self.recovered: Recovered | None = None
        self.replayed: list[tuple[int, bytes]] = []
        self.snapshotting = self.closed = False
        self.events: list[Event] = []
        self.journal.open()
        while self.recovered is None:
            self.wait()

    def wait(self) -> None:
        """Waits until the disk has completed a request."""
        self.submit()
        self._ready.poll(10_000)
        self.poll()

    def submit(self) -> None:
        self.disk.submit(self.journal.take_requests())

    def poll(self) -> None:
        for completion in self.disk.take_completions():
            self.journal.completed(completion)
        for event in self.journal.take_events():
            self.events.append(event)
            self.hear(event)
        self.submit()

    def hear(self, event: Event) -> None:
        match event:
            case RestoredPiece(_, data):
                self.applied, self.memory, sheets = msgspec.msgpack.decode(data, type=State)
                self.sheets = [Sheet(self.journal.pages.adopt(PagePlace(*place)), numbers) for place, numbers in sheets]
            case Replayed(entries):
                for entry in entries:
                    self.replayed.append((entry.index, entry.payload))
                    self.apply(entry.index, entry.payload)
            case Recovered():
                self.recovered = event
                if event.damage is None:
                    self.journal.replayed()
                    self.journal.commit(event.last_index)
            case Durable(index):
                self.journal.commit(index)
            case PageFetched(page, blob):
                self.fetched[page] = blob
            case SnapshotSaved():
                self.snapshotting = False
            case Closed():
                self.closed = True
            case _:
                pass

    def apply(self, index: int, payload: bytes) -> None:
        released, body = msgspec.msgpack.decode(payload, type=tuple[list[int], bytes])
        self.memory[index] = body
        for number in released:
            self.memory.pop(number, None)
        for sheet in list(self.sheets):
            sheet.numbers.difference_update(released)
            if not sheet.numbers:
                self.sheets.remove(sheet)
                self.journal.pages.free(sheet.page)
        if len(self.memory) >= 2 * PAGED_FROM:
            numbers = sorted(self.memory)[:PAGED_FROM]
            blob = msgspec.msgpack.encode({number: self.memory.pop(number) for number in numbers})
            self.sheets.append(Sheet(self.journal.pages.put(blob), set(numbers)))
        self.applied = index

    def read_all(self) -> dict[int, bytes]:
        for sheet in self.sheets:
            self.journal.pages.fetch(sheet.page)
        while any(sheet.page not in self.fetched for sheet in self.sheets):
            self.wait()
        found = dict(self.memory)
        for page, numbers in self.sheets:
            bodies = msgspec.msgpack.decode(self.fetched[page], type=dict[int, bytes])
            found.update({number: bodies[number] for number in numbers})
        return found

    def append(self, count: int) -> None:
        first = self.journal.last_index + 1
        payloads = [payload_of(index) for index in range(first, first + count)]
        self.journal.extend(Term(1), payloads)
        for place, payload in enumerate(payloads):
            self.apply(first + place, payload)
        self.journal.sync()
        self.submit()

    def snapshot(self) -> None:
        self.snapshotting = True
        sheets = [(tuple(page.place), sorted(numbers)) for page, numbers in self.sheets]
        writer = self.journal.begin_snapshot(LogIndex(self.applied), [page for page, _ in self.sheets])
        writer.add(1, msgspec.msgpack.encode((self.applied, self.memory, sheets)))
        writer.finish()
        self.submit()

    def close(self) -> None:
        self.journal.close()
        while not self.closed:
            self.wait()
        self.disk.close()


def main() -> None:
    keeper = Keeper(Path(sys.argv[1]))
    random = Random(int(sys.argv[2]))
    said = 0
    now_ms = 0
    while True:
        keeper.append(random.randint(1, 60))
        if keeper.journal.snapshot_due and not keeper.snapshotting:
            keeper.snapshot()
        now_ms += 50
        keeper.journal.tick(now_ms)
        while keeper.journal.last_index - keeper.journal.durable_index > 100:
            keeper.wait()
        keeper.poll()
        if keeper.journal.durable_index > said:
            said = keeper.journal.durable_index
            sys.stdout.write(f"{said}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
