"""A journal on a simulated disk, its owner, and what they ought to know: the obvious second definition.

The owner keeps messages: each entry brings one and may release older ones. It builds on an entry at once, as a root
does, or when it is committed, as a backup does. What it is told to keep and what the journal gives back after a crash
are compared with a plain list of all that was ever appended.
"""

from __future__ import annotations

from random import Random

import msgspec

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.effects import FileName
from pandomq.journal.events import (
    Closed,
    Durable,
    EntriesRead,
    Event,
    FlawFound,
    RangesRead,
    RangesWanted,
    Recovered,
    Replayed,
    SnapshotBegins,
    SnapshotFailed,
    SnapshotPiece,
    SnapshotSaved,
    Truncated,
)
from pandomq.journal.hard_state import HardState
from pandomq.journal.journal import Journal
from pandomq.journal.limits import Fsync, JournalSettings
from pandomq.sim.disk import NEVER_MS, SimDisk
from pandomq.sim.files import Loss

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
)

Place = tuple[int, int, int]
"""Index, offset, length."""


class Owner:
    """The state that the log builds: live messages by number, and where their bytes are."""

    def __init__(self) -> None:
        self.applied_index = 0
        self.messages: dict[int, Place] = {}

    def apply(self, index: int, payload: bytes) -> tuple[int, list[Place]]:
        """Bytes that became live, and the places that no longer are."""
        released, body = msgspec.msgpack.decode(payload, type=tuple[list[int], bytes])
        gone = [self.messages.pop(number) for number in released if number in self.messages]
        self.messages[index] = (index, len(payload) - len(body), len(body))
        self.applied_index = index
        return len(body), gone

    def encode(self) -> bytes:
        return msgspec.msgpack.encode((self.applied_index, self.messages))

    def decode(self, data: bytes) -> None:
        self.applied_index, self.messages = msgspec.msgpack.decode(data, type=tuple[int, dict[int, Place]])


def encode_entry(released: list[int], body: bytes) -> bytes:
    return msgspec.msgpack.encode((released, body))


class Store:
    """One disk, and the journals that come and go on it."""

    def __init__(
        self, seed: int = 0, settings: JournalSettings = SMALL, *, early: bool = True, capacity_bytes: int = 2**40
    ) -> None:
        self.early = early
        self.disk = SimDisk(Random(seed), capacity_bytes=capacity_bytes)
        self.settings = settings
        self.now_ms = 1
        self.history: list[tuple[int, bytes]] = []
        """(term, payload) of every entry of the log as it should be."""
        self.older: list[tuple[int, bytes]] | None = None
        """The same before a cut of which the disk may not know yet."""
        self.durable = 0
        self.hard_state = HardState()
        self.start()

    def start(self) -> None:
        """A new process; nothing is open yet."""
        self.journal = Journal(self.settings, node_name=NODE, new_cluster_id=CLUSTER)
        self.owner = Owner()
        self.recovered: Recovered | None = None
        self.replayed: list[tuple[int, int, bytes]] = []
        self.events: list[Event] = []
        self.closed = False
        self.snapshot_begun = 0
        self.snapshot_active = False
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
        due_ms = self.disk.next_ms
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
                self.owner = Owner()
            case SnapshotPiece(_, data):
                self.owner.decode(data)
                for index, _, length in self.owner.messages.values():
                    self.journal.live(LogIndex(index), length)
            case Replayed(entries):
                for entry in entries:
                    self.replayed.append((entry.index, entry.term, entry.payload))
                    self.apply(entry.index, entry.payload)
            case Recovered():
                self.recovered = event
                if event.damage is None:
                    self.journal.replayed()
                    self.journal.commit(event.last_index)
            case Durable(index):
                self.durable = index
                self.apply_up_to(index)
                self.journal.commit(index)
            case RangesWanted(ticket, first_index, last_index):
                places = [place for place in self.owner.messages.values() if first_index <= place[0] <= last_index]
                self.journal.live_ranges(ticket, places, done=True)
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

    def apply(self, index: int, payload: bytes) -> None:
        live_bytes, gone = self.owner.apply(index, payload)
        self.journal.live(LogIndex(index), live_bytes)
        self.journal.released((LogIndex(place[0]), place[2]) for place in gone)

    def apply_up_to(self, last_index: int) -> None:
        for index in range(self.owner.applied_index + 1, last_index + 1):
            self.apply(index, self.history[index - 1][1])

    def append(self, *bodies: bytes, released: list[int] | None = None, term: int | None = None) -> None:
        term = term if term is not None else max(1, self.journal.last_term)
        payloads = [encode_entry((released or []) if place == 0 else [], body) for place, body in enumerate(bodies)]
        assert self.journal.last_index == len(self.history)
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
        writer = self.journal.begin_snapshot(LogIndex(self.owner.applied_index))
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

    def read_live(self) -> dict[int, bytes | None]:
        """The body of every live message, by its number."""
        numbers = sorted(self.owner.messages, key=lambda number: number * 7919 % 1009)
        self.journal.read_ranges([self.owner.messages[number] for number in numbers])
        self.pump()
        self.settle()
        return dict(zip(numbers, self.heard(RangesRead)[-1].pieces, strict=True))

    # Crashes.

    def crash(self, loss: Loss = Loss.SOME) -> None:
        if self.recovered is not None and self.settings.fsync is not Fsync.ALWAYS and loss is not Loss.NONE:
            # The policy promises no more than what was really synced.
            self.durable = self.journal.synced_index
        self.disk.crash(loss)
        self.start()

    def check(self) -> None:
        """What the journal gave back is what it was given."""
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
        assert self.owner.messages == expected.messages
        bodies = {number: self.history[number - 1][1][offset:] for number, (_, offset, _) in expected.messages.items()}
        assert self.read_live() == bodies
        for index, term, payload in self.read_all():
            assert (term, payload) == self.history[index - 1]
        assert not self.heard(FlawFound)

    def files(self, kind: str) -> list[FileName]:
        return [file for file in self.disk.sizes() if file.startswith(kind)]

    def saved_snapshots(self) -> list[int]:
        return [event.index for event in self.heard(SnapshotSaved)]
