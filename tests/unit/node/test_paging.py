"""Messages that do not fit into memory: they come back in order, survive what they should, and take no memory."""

from __future__ import annotations

import errno
from random import Random

import pytest

from pandomq.fieldtable import FieldTable
from pandomq.journal.effects import Read, Write
from pandomq.journal.faults import CorruptFault
from pandomq.methods import BasicGet, BasicGetOk, QueueDeclare, QueuePurge
from pandomq.properties import Properties
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.disks.files import Loss
from tests.unit.node.lives import PERSISTENT, TRANSIENT, Life, Publisher, Reader

START_MS = 1_700_000_000_000
PAGING_BYTES = 20_000

pytestmark = pytest.mark.both_kernels


def begin(disk: SimDisk | None = None, arguments: FieldTable | None = None) -> tuple[Life, Publisher]:
    life = Life(disk or SimDisk(Random(1)), START_MS, PAGING_BYTES)
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True, arguments=arguments or {}))
    life.until(lambda: "q" in life.broker.state.vhosts["/"].queues and not len(life.broker.held))
    return life, publisher


def fill(
    life: Life, publisher: Publisher, count: int, properties: Properties = PERSISTENT, first: int = 0
) -> list[bytes]:
    bodies = [b"%d " % number + bytes(100) for number in range(first, first + count)]
    confirmed = publisher.confirmed
    for place, body in enumerate(bodies):
        publisher.publish("q", body, properties)
        if not place % 10:
            life.turn()
    life.until(lambda: publisher.confirmed == confirmed + count)
    life.until(lambda: not life.journal.pages.pending_bytes)
    return bodies


def pages(life: Life) -> int:
    return len(life.broker.state.vhosts["/"].queues["q"].kernel.pages())


def drain(life: Life, count: int) -> list[bytes]:
    reader = Reader(life)
    reader.consume("q")
    life.until(lambda: len(reader.delivered) >= count, turns=20_000)
    for _ in range(20):
        life.turn()
    reader.close()
    return reader.delivered


@pytest.mark.parametrize("properties", [PERSISTENT, TRANSIENT])
def test_a_long_queue_takes_little_memory_and_comes_back_in_order(properties: Properties) -> None:
    life, publisher = begin()
    bodies = fill(life, publisher, 1000, properties)
    engine = life.broker.engine
    assert pages(life) > 20
    assert engine.ready_bytes < 3 * PAGING_BYTES and engine.held_messages < 300
    assert drain(life, 1000) == bodies
    assert not pages(life) and engine.held_messages == 0
    life.until(lambda: not life.journal.pages.live_bytes)


def test_a_get_waits_for_its_message() -> None:
    life, publisher = begin()
    bodies = fill(life, publisher, 600)
    reader = Reader(life)
    assert [reader.get("q") for _ in range(600)] == bodies
    assert reader.get("q") is None


def test_many_gets_at_once_are_answered_in_order_and_delay_no_other_client() -> None:
    life, publisher = begin()
    bodies = fill(life, publisher, 600)
    reader, other = Reader(life), Reader(life)
    reader.say(*[BasicGet("q", no_ack=True) for _ in range(700)])
    life.turn()
    other.say(QueueDeclare("other"))
    life.until(lambda: bool(other.answers), turns=200)
    life.until(lambda: len(reader.answers) == 700, turns=20_000)
    got = [answer.body for answer in reader.answers if isinstance(answer.method, BasicGetOk)]
    assert got == bodies


def test_a_purge_needs_no_messages_in_memory() -> None:
    life, publisher = begin()
    fill(life, publisher, 600)
    reader = Reader(life)
    before = len(life.requests)
    reader.say(QueuePurge("q"))
    life.until(lambda: bool(reader.answers), turns=200)
    life.until(lambda: not life.journal.pages.live_bytes, turns=200)
    assert not [request for request in life.requests[before:] if isinstance(request.effect, Read)]
    assert reader.get("q") is None


def test_a_restart_does_not_read_what_is_not_in_memory() -> None:
    disk = SimDisk(Random(1))
    life, publisher = begin(disk)
    bodies = fill(life, publisher, 1500)
    life.broker.disconnect(publisher.client, life.now_ms)
    life.stop()
    disk.crash(Loss.ALL)
    life = Life(disk, life.now_ms, PAGING_BYTES)
    assert pages(life) > 20
    read = [request.effect for request in life.requests if isinstance(request.effect, Read)]
    assert sum(effect.length for effect in read if effect.file.startswith("pages")) <= 512 * len(disk.sizes())
    assert life.broker.engine.held_messages < 300
    assert drain(life, 1500) == bodies


def test_after_a_crash_messages_that_come_back_are_marked_redelivered() -> None:
    disk = SimDisk(Random(1))
    life, publisher = begin(disk)
    bodies = fill(life, publisher, 1500)
    disk.crash(Loss.ALL)
    life = Life(disk, life.now_ms, PAGING_BYTES)
    assert pages(life) > 20, "also what the log brings again leaves memory"
    reader = Reader(life)
    reader.consume("q")
    life.until(lambda: len(reader.delivered) == 1500, turns=20_000)
    assert reader.delivered == bodies and all(reader.redelivered)


@pytest.mark.parametrize("seed", range(8))
def test_confirmed_messages_survive_crashes_while_others_come_and_go(seed: int) -> None:
    random = Random(seed)
    disk = SimDisk(random)
    now_ms, number = START_MS, 0
    for _ in range(5):
        life = Life(disk, now_ms, PAGING_BYTES, page_messages=random.choice((5, 20, 60)))
        publisher = Publisher(life)
        publisher.say(QueueDeclare("q", durable=True))
        life.until(lambda life=life: "q" in life.broker.state.vhosts["/"].queues and not len(life.broker.held))
        sent = [b"%d " % place + bytes(random.randrange(400)) for place in range(number, number + 400)]
        number += 400
        taken: list[bytes] = []
        reader = Reader(life)
        for body in sent:
            publisher.publish("q", body)
            if random.random() < 0.2:
                life.turn()
            if random.random() < 0.1:
                got = reader.get("q")
                taken += [got] if got is not None else []
        for _ in range(random.randrange(40)):
            life.turn()
        # Gets come in order; what was taken may come again unless the log has it.
        assert taken == sent[: len(taken)]
        confirmed = publisher.confirmed
        now_ms = life.now_ms
        disk.crash(random.choice(list(Loss)))
        after = Life(disk, now_ms, PAGING_BYTES)
        found = drain(after, max(0, confirmed - len(taken)))
        start = sent.index(found[0]) if found else len(taken)
        assert start <= len(taken) and found == sent[start : start + len(found)]
        assert start + len(found) >= confirmed
        # The log knows that everything was taken.
        after.until(lambda after=after: after.journal.durable_index == after.journal.last_index)
        now_ms = after.now_ms
        disk.crash(Loss.ALL)


def test_a_full_disk_loses_nothing_and_holds_publishers_back() -> None:
    disk = SimDisk(Random(1))
    life, publisher = begin(disk)
    first = fill(life, publisher, 300)
    for _ in range(500):
        life.turn()
    disk.fail_next(Write, errno.ENOSPC, 1)
    more = [b"%d " % number + bytes(100) for number in range(300, 600)]
    for body in more:
        # Nothing of this is logged, so that the disk's only writes are pages.
        publisher.publish("q", body, TRANSIENT)
    life.until(lambda: life.journal.pages.stalled, turns=200)
    assert life.node._log.holds_back
    life.until(lambda: not life.journal.pages.stalled and not life.node._log.holds_back, turns=20_000)
    assert drain(life, 600) == first + more


def test_a_page_that_is_damaged_ends_the_broker_and_is_named() -> None:
    disk = SimDisk(Random(1))
    life, publisher = begin(disk)
    fill(life, publisher, 600)
    page = life.broker.state.vhosts["/"].queues["q"].kernel.pages()[0]
    disk.flip_bit(page.owner.file.file, (page.owner.place.offset + 50) * 8)
    with pytest.raises(CorruptFault, match=f"{page.owner.file.file} is corrupt at offset {page.owner.place.offset}"):
        drain(life, 600)


def test_churn_grows_neither_disk_nor_memory() -> None:
    disk = SimDisk(Random(1))
    life, publisher = begin(disk)
    fill(life, publisher, 600)
    reader = Reader(life)
    sizes = []
    for round_number in range(20):
        fill(life, publisher, 100, first=1000 + 100 * round_number)
        assert all(reader.get("q") is not None for _ in range(100))
        for _ in range(1200):
            life.turn()
        sizes.append(sum(disk.sizes().values()))
        assert life.broker.engine.ready_bytes < 3 * PAGING_BYTES
    assert max(sizes[10:]) <= 1.2 * max(sizes[:10])


def test_priorities_and_time_to_live_keep_their_meaning() -> None:
    life, publisher = begin(arguments={"x-max-priority": 3})
    for number in range(600):
        publisher.publish("q", b"%d" % (number % 4) + bytes(100), Properties(delivery_mode=2, priority=number % 4))
        if not number % 10:
            life.turn()
    life.until(lambda: publisher.confirmed == 600)
    assert pages(life) > 5
    assert [body[:1] for body in drain(life, 600)] == [b"3"] * 150 + [b"2"] * 150 + [b"1"] * 150 + [b"0"] * 150


def test_messages_on_the_disk_expire_in_time() -> None:
    life, publisher = begin(arguments={"x-message-ttl": 5000})
    fill(life, publisher, 600)
    assert pages(life) > 5
    life.now_ms += 10_000
    queue = life.broker.state.vhosts["/"].queues["q"].kernel
    life.until(lambda: not queue.ready_count, turns=5000)
    assert not queue.pages()
