"""Streams of a broker whose disk loses and tears writes: what was confirmed is read, in order, whatever happened."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pandomq.broker.log.snapshot import KeptChunk, Snapshot, read_parts, without_pages
from pandomq.broker.streams.stream import Stream
from pandomq.chunk_form import decode_rows
from pandomq.fieldtable import FieldTable
from pandomq.journal.effects import Read
from pandomq.journal.faults import CorruptFault
from pandomq.journal.paging.page_file import PagePlace
from pandomq.methods import BasicConsume, BasicDeliver, BasicQos, QueueDeclare
from pandomq.node.log.chunk_pages import COMING_BYTES_MAX, PENDING_BYTES_MAX, ChunkPages
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from tests.unit.node.lives import Life, Publisher, Reader

START_MS = 1_700_000_000_000
STREAM: FieldTable = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 2000}

pytestmark = pytest.mark.both_kernels


def begin(life: Life, **arguments: Any) -> Publisher:
    publisher = Publisher(life)
    publisher.say(QueueDeclare("s", durable=True, arguments={**STREAM, **arguments}))
    life.until(lambda: life.broker.streams.find("/", "s") is not None and not len(life.broker.held))
    return publisher


def stream_of(life: Life) -> Stream:
    stream = life.broker.streams.find("/", "s")
    assert stream is not None
    return stream


def fill(life: Life, publisher: Publisher, count: int, first: int = 0) -> None:
    confirmed = publisher.confirmed
    for number in range(first, first + count):
        publisher.publish("s", b"%d " % number + bytes(100))
        if not number % 10:
            life.turn()
    life.until(lambda: publisher.confirmed == confirmed + count)


def read(life: Life, offset: Any, end: int) -> list[int]:
    """The numbers of what a consumer gets."""
    reader = Reader(life)
    reader.say(BasicQos(0, 10_000, False), BasicConsume("s", "t", arguments={"x-stream-offset": offset}))
    life.until(lambda: numbers(reader)[-1:] == [end - 1], turns=20_000)
    reader.close()
    return numbers(reader)


def numbers(reader: Reader) -> list[int]:
    return [int(answer.body.split()[0]) for answer in reader.answers if isinstance(answer.method, BasicDeliver)]


def test_chunks_are_on_the_disk_and_are_read_from_there() -> None:
    life = Life(SimDisk(Random(1)), START_MS)
    publisher = begin(life)
    fill(life, publisher, 500)
    life.until(lambda: not life.journal.pages.pending_bytes)
    assert len(stream_of(life).index.rows) > 20
    life.broker.state.chunk_cache._opened.clear()
    before = len(life.requests)
    assert read(life, "first", 500) == list(range(500))
    assert read(life, 333, 500) == list(range(333, 500))
    assert [request for request in life.requests[before:] if isinstance(request.effect, Read)]
    found: list[bytes | None] = []
    stream_of(life).read(0, found.append)
    life.until(lambda: found)
    assert found[0] is not None
    assert [row.offset for row in decode_rows(found[0])][:2] == [0, 1]


def test_a_restart_does_not_read_chunks() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, START_MS)
    publisher = begin(life)
    fill(life, publisher, 1500)
    life.broker.disconnect(publisher.client, life.now_ms)
    life.stop()
    disk.crash(Loss.ALL)
    life = Life(disk, life.now_ms)
    effects = [request.effect for request in life.requests if isinstance(request.effect, Read)]
    assert sum(effect.length for effect in effects if effect.file.startswith("pages")) <= 512 * len(disk.sizes())
    assert read(life, "first", 1500) == list(range(1500))


@pytest.mark.parametrize("seed", range(8))
def test_confirmed_messages_are_read_after_crashes(seed: int) -> None:
    random = Random(seed)
    disk = SimDisk(random)
    now_ms, end = START_MS, 0
    for _ in range(5):
        life = Life(disk, now_ms)
        publisher = begin(life)
        assert stream_of(life).committed_end == end
        confirmed = publisher.confirmed
        for number in range(end, end + 300):
            publisher.publish("s", b"%d " % number + bytes(random.randrange(300)))
            if random.random() < 0.2:
                life.turn()
        for _ in range(random.randrange(60)):
            life.turn()
        confirmed = end + publisher.confirmed - confirmed
        disk.crash(random.choice(list(Loss)))
        life = Life(disk, life.now_ms)
        found = stream_of(life).committed_end
        assert confirmed <= found <= end + 300
        end = found
        if end:
            first = random.randrange(end)
            assert read(life, first, end) == list(range(first, end))
        now_ms = life.now_ms
        disk.crash(Loss.ALL)


def test_retention_gives_the_disk_back() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, START_MS)
    publisher = begin(life, **{"x-max-length-bytes": 30_000})
    sizes = []
    for first in range(0, 6000, 300):
        fill(life, publisher, 300, first)
        for _ in range(1200):
            life.turn()
        sizes.append(sum(disk.sizes().values()))
    assert max(sizes[10:]) <= 1.2 * max(sizes[:10])
    first = stream_of(life).first_offset
    assert 5000 < first
    assert read(life, "first", 6000) == list(range(first, 6000))


def test_a_chunk_that_is_damaged_ends_the_broker_and_is_named() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, START_MS)
    fill(life, begin(life), 500)
    life.until(lambda: not life.journal.pages.pending_bytes)
    life.broker.state.chunk_cache._opened.clear()
    stored = stream_of(life).index.rows[3].stored
    disk.flip_bit(stored.file.file, (stored.place.offset + 50) * 8)
    with pytest.raises(CorruptFault, match=f"{stored.file.file} is corrupt at offset {stored.place.offset}"):
        read(life, "first", 500)


def test_a_repaired_snapshot_does_not_name_the_damaged_chunk() -> None:
    life = Life(SimDisk(Random(1)), START_MS)
    fill(life, begin(life), 300)
    life.until(lambda: not life.journal.pages.pending_bytes)
    whole = b"".join(Snapshot(life.broker, exact=True).pieces(10_000))
    chunks = [part for part in read_parts(bytearray(whole)) if isinstance(part, KeptChunk)]
    left = list(read_parts(bytearray(without_pages(whole, {chunks[2].stored_at}))))
    assert [part for part in left if isinstance(part, KeptChunk)] == chunks[:2] + chunks[3:]


def test_a_reader_skips_a_chunk_that_is_missing() -> None:
    life = Life(SimDisk(Random(1)), START_MS)
    fill(life, begin(life), 300)
    index = stream_of(life).index
    gone = index.rows.pop(5)
    wanted = [number for number in range(300) if not gone.first_offset <= number <= gone.last_offset]
    assert read(life, "first", 300) == wanted
    assert read(life, gone.first_offset, 300) == wanted[gone.first_offset :]


class SlowPages:
    """A journal's pages, which do nothing by themselves."""

    def __init__(self) -> None:
        self.pending_bytes = 0
        self.fetched: list[Any] = []
        self.freed: list[Any] = []

    def fetch(self, page: Any) -> None:
        self.fetched.append(page)

    def free(self, page: Any) -> None:
        self.freed.append(page)


class SlowPage:
    def __init__(self, length: int) -> None:
        self.place = PagePlace(1, 0, length, 0)


def test_publishers_wait_for_a_disk_that_is_behind() -> None:
    pages: Any = SlowPages()
    chunks = ChunkPages(pages)
    marks = []
    for pending_bytes in (0, PENDING_BYTES_MAX, PENDING_BYTES_MAX + 1, PENDING_BYTES_MAX // 2, PENDING_BYTES_MAX // 4):
        pages.pending_bytes = pending_bytes
        marks.append(chunks.behind)
    assert marks == [False, False, True, True, False]


def test_reads_are_bounded_and_each_is_answered_once() -> None:
    pages: Any = SlowPages()
    chunks = ChunkPages(pages)
    stored: list[Any] = [SlowPage(COMING_BYTES_MAX // 2) for _ in range(5)]
    answers: list[tuple[int, bytes | None]] = []
    for number, page in enumerate(stored):
        for _ in range(2):
            chunks.fetch(page, lambda blob, number=number: answers.append((number, blob and blob[:1])))  # type: ignore[misc]
    assert pages.fetched == stored[:2], "what is asked for twice is read once, and no more than so much at a time"
    chunks.free(stored[4])
    chunks.free(stored[0])
    assert answers == [(4, None), (4, None), (0, None), (0, None)]
    assert not chunks.fetched(stored[0], b"x"), "who waited has heard that it is gone"
    assert pages.fetched == stored[:3]
    answers.clear()
    for page in stored[1:4]:
        assert chunks.fetched(page, b"y" * page.place.length)
    assert answers == [(number, b"y") for number in (1, 1, 2, 2, 3, 3)]
    assert pages.fetched == stored[:4]


def test_a_page_that_could_not_be_asked_for_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: Any = SlowPages()
    chunks = ChunkPages(pages)
    page: Any = SlowPage(COMING_BYTES_MAX)
    answers: list[bytes | None] = []

    def fail(_page: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(pages, "fetch", fail)
        with pytest.raises(ZeroDivisionError):
            chunks.fetch(page, answers.append)
    assert pages.fetched == []
    chunks.fetch(page, answers.append)
    assert pages.fetched == [page]
    assert chunks.fetched(page, b"y" * COMING_BYTES_MAX)
    assert [answer and answer[:1] for answer in answers] == [b"y", b"y"]
