"""A log entry applied by the kernel does what its records say."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from pandomq.kernel.records import (
    ENTRY_START,
    BadEntry,
    CommandRecord,
    DequeueRecord,
    EnqueueRecord,
    decode_entry,
    encode_command,
    encode_dequeue,
    encode_enqueue,
)
from tests.support.examples import examples
from tests.unit.kernel.frames import PERSISTENT, headers, properties
from tests.unit.kernel.world import World

SETTINGS: list[dict[str, Any]] = [
    {},
    {"priority_max": 3},
    {"ttl_ms": 50},
    {"last_value_key": b"k"},
    {"withdrawable": True},
]
PROPERTIES = [
    PERSISTENT,
    properties(delivery_mode=2, priority=2),
    properties(delivery_mode=2, expiration=b"7"),
    properties(delivery_mode=2, table=headers(k=b"1")),
    properties(delivery_mode=2, table=headers(k=b"2")),
]


class Follower:
    """A world that is told by a log, and its ReplayHooks."""

    def __init__(self, kernel: ModuleType) -> None:
        self.world = World(kernel)
        self.told: list[Any] = []
        for settings in SETTINGS:
            self.world.queue(logged=True, **settings)

    def began(self, now_ms: int) -> None:
        self.world.now_ms = now_ms
        self.told.append(now_ms)

    def find_queue(self, queue_id: int) -> Any:
        self.told.append(queue_id)
        queues = [queue for queue in self.world.queues if queue.queue_id == queue_id and not queue.deleted]
        return queues[0] if queues else None

    def restored(self, queue: Any, sequence: int, message: Any) -> None:
        self.told.append((queue.owner, sequence, self.world.name(message)))

    def command(self, command: bytes) -> None:
        self.told.append(command)
        # As a broker does: after it a queue may be another one.
        self.world.queues[command[0] % len(SETTINGS)].delete()

    def apply_by_hand(self, entry: bytes, term: int) -> None:
        decoded = decode_entry(entry)
        world = self.world
        world.now_ms = decoded.now_ms
        by_id = {queue.queue_id: queue for queue in world.queues}
        for record in decoded.records:
            match record:
                case EnqueueRecord():
                    message = world.kernel.Message(record.routing, record.header, record.body)
                    places = [(by_id[number], sequence, term) for number, sequence in record.places if number in by_id]
                    world.engine.restore(message, places, decoded.now_ms)
                case DequeueRecord():
                    if record.queue_id in by_id:
                        by_id[record.queue_id].drop(record.sequence_first, record.count)
                case CommandRecord():
                    self.world.queues[record.command[0] % len(SETTINGS)].delete()


def an_entry(script: list[tuple[int, int, int]], sequences: list[int], now_ms: int) -> bytes:
    records = []
    for kind, a, b in script:
        if kind < 6:
            places = []
            for number in {a % 6, b % 6}:
                places.append((number + 1, sequences[number]))
                sequences[number] += 1 + b % 2
            body = b"x" * (b % 20)
            header = b"\0\x3c\0\0" + len(body).to_bytes(8, "big") + PROPERTIES[a % len(PROPERTIES)]
            records.append(encode_enqueue(places, b"\0\x01" + bytes((97 + a % 3,)), header, body))
        elif kind < 9:
            first = max(1, sequences[a % 6] - b % 12)
            records.append(encode_dequeue(a % 6 + 1, first, (1, 2, 9, 0xFFFFFFFF)[b % 4]))
        else:
            records.append(encode_command(bytes((a, b))))
    return ENTRY_START.pack(1, now_ms, len(records)) + b"".join(records)


NUMBERS = st.integers(0, 255)
ENTRIES = st.lists(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 5, 5, 5, 9]), NUMBERS, NUMBERS), max_size=12),
    min_size=1,
    max_size=8,
)


@hypothesis.settings(max_examples=examples(150), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(scripts=ENTRIES, pages=st.booleans())
def test_both_twins_replay_the_records(
    plain: ModuleType, fast: ModuleType, scripts: list[list[tuple[int, int, int]]], pages: bool
) -> None:
    followers = [Follower(plain), Follower(fast)]
    by_hand = Follower(plain)
    sequences = [1] * 6
    for number, script in enumerate(scripts):
        entry = an_entry(script, sequences, 1000 + number)
        by_hand.apply_by_hand(entry, number)
        for follower in followers:
            follower.world.engine.replay(entry, number, follower)
            if pages:
                follower.world.use_pages(2, 30)
                follower.world.page_out()
            follower.world.check_if_plain()
    assert followers[0].told == followers[1].told
    assert followers[0].world.view() == followers[1].world.view()
    counts = [[(queue.ready_count, queue.ready_bytes) for queue in one.world.queues] for one in (*followers, by_hand)]
    assert counts[0] == counts[1] == counts[2]
    if not pages:
        assert followers[1].world.view()["queues"] == by_hand.world.view()["queues"]


@hypothesis.given(cut=st.integers(0, 200), flip=st.integers(0, 200), value=NUMBERS)
def test_damaged_entries_are_refused_whole(kernel: ModuleType, cut: int, flip: int, value: int) -> None:
    entry = an_entry([(0, 1, 5), (7, 1, 1), (9, 3, 3), (1, 2, 9)], [1] * 6, 5)
    damaged = bytearray(entry[: cut % len(entry)] if cut % 3 else entry)
    if damaged:
        damaged[flip % len(damaged)] = value
    try:
        decode_entry(bytes(damaged))
    except BadEntry:
        follower = Follower(kernel)
        with pytest.raises(BadEntry):
            follower.world.engine.replay(bytes(damaged), 1, follower)
        assert follower.told == []
        assert not any(queue.ready_count for queue in follower.world.queues)
