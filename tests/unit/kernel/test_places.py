"""Messages named by their places: what a front keeps of settlements, and what a root makes of them."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest

from pandomq.kernel import constants
from pandomq.kernel.constants import ABSENT, ACK, NACK, PLACE_UNKNOWN, REJECT, SETTLE, SETTLE_ROWS_MAX, SETTLED
from tests.unit.kernel.frames import PERSISTENT, ack, deliver, nack, publish, read, reject, split_frames
from tests.unit.kernel.test_mirrors import Front, acks
from tests.unit.kernel.world import World

Row = tuple[int, ...]
QUEUE_ID = 77


class Placed(Front):
    """A front whose root reports the places of its messages: tag t has sequence 100 + t and term 3."""

    def subscribe(self, **settings: Any) -> Any:
        consumer = super().subscribe(**settings)
        consumer.queue.queue_id = QUEUE_ID
        return consumer

    def arrive(self, consumer: Any, *tags: int, **_: Any) -> None:
        data = b"".join(deliver(consumer.tag, tag, b"%d" % tag, channel=3, place=(100 + tag, 3)) for tag in tags)
        for run in self.world.kernel.Scanner(4096, 100, True).feed(data):
            self.world.engine.mirror(self.client, run, self.world.now_ms)
        self.delivered()

    def change_root(self) -> None:
        self.client.uplink = self.tunnel = self.world.session()

    def rows(self) -> list[list[Row]]:
        """Returns the settlements by place, frame by frame; no other method may be sent."""
        found = []
        for _, channel, payload in split_frames(self.tunnel.take()):
            class_id, method_id, number, size = struct.unpack_from(">HHQI", payload)
            assert (channel, class_id, method_id, number, size) == (3, 60, SETTLE, 0, len(payload) - 16)
            found.append(list(struct.iter_unpack(">QQQB", payload[16:])))
        return found


@pytest.fixture
def front(world: World) -> Placed:
    return Placed(world)


def row(tag: int, method_id: int = ACK) -> Row:
    return QUEUE_ID, 100 + tag, 3, method_id


@pytest.mark.proves("R29")
def test_settled_messages_can_be_settled_again_by_place(front: Placed) -> None:
    front.arrive(front.subscribe(), 1, 2, 3, 4)
    front.settle(acks(1, 2), reject(3, False, channel=3), nack(4, False, True, channel=3))
    assert (front.channel.unproven_count, front.channel.settled_number) == (3, 3)
    front.change_root()
    front.channel.settle_again()
    assert front.rows() == [[row(1), row(2), row(3, REJECT)]]


def test_proven_settlements_are_forgotten(front: Placed) -> None:
    front.arrive(front.subscribe(), *range(1, 41))
    front.settle(acks(*range(1, 31)))
    front.channel.prove(10)
    assert (front.channel.unproven_count, front.channel.settled_number) == (20, 30)
    front.channel.prove(7)
    front.settle(acks(31))
    front.channel.prove(29)
    front.channel.settle_again()
    assert front.rows() == [[row(30), row(31)]]
    front.channel.prove(1000)
    assert (front.channel.unproven_count, front.channel.settled_number) == (0, 31)
    front.settle(acks(32))
    assert (front.channel.unproven_count, front.channel.settled_number) == (1, 32)


@pytest.mark.proves("R29")
def test_deliveries_of_an_earlier_root_are_settled_by_place(front: Placed) -> None:
    consumer = front.subscribe()
    front.arrive(consumer, 1, 2, 3, 4)
    front.change_root()
    front.world.feed(front.client, acks(1) + nack(2, False, True, channel=3) + nack(4, True, False, channel=3))
    assert front.rows() == [[row(1), row(3, NACK), row(4, NACK)]]
    consumer.queue.delete()
    assert front.channel.unproven_count == 3


def test_both_kinds_in_one_go(front: Placed) -> None:
    old = front.subscribe()
    front.arrive(old, 1, 2, 3)
    front.change_root()
    new = front.subscribe()
    front.arrive(new, 1, 2)
    front.world.feed(front.client, acks(1, 4, 2, 5, 3))
    methods = [struct.unpack_from(">HH", payload)[1] for _, _, payload in split_frames(front.tunnel.take())]
    # Those by tag are joined while those by place are written.
    assert methods == [SETTLE, SETTLE, ACK, SETTLE]


def test_frames_are_short(front: Placed) -> None:
    count = 2 * SETTLE_ROWS_MAX + 5
    front.arrive(front.subscribe(), *range(1, count + 1))
    front.change_root()
    front.world.feed(front.client, ack(0, True, channel=3))
    assert [len(rows) for rows in front.rows()] == [SETTLE_ROWS_MAX, SETTLE_ROWS_MAX, 5]
    front.channel.settle_again()
    assert [len(rows) for rows in front.rows()] == [SETTLE_ROWS_MAX, SETTLE_ROWS_MAX, 5]


def test_settlements_are_kept_without_a_tunnel_to_the_root(front: Placed) -> None:
    front.arrive(front.subscribe(), 1)
    front.client.uplink = None
    front.world.feed(front.client, acks(1))
    front.channel.settle_again()
    front.change_root()
    front.channel.settle_again()
    assert front.rows() == [[row(1)]]


def test_nothing_is_kept_of_transactions_of_unknown_places_and_of_closed_channels(front: Placed) -> None:
    known, unknown = front.subscribe(), Front.subscribe(front)
    unknown.queue.queue_id = 0
    front.arrive(known, 1)
    front.arrive(unknown, 2)
    Front.arrive(front, known, 3)
    front.delivered()
    front.settle(acks(2, 3))
    assert front.channel.unproven_count == 0
    front.channel.mode = constants.TRANSACTION
    front.world.engine.settle_one(front.channel, ACK, 1, False, False, 0)
    assert front.channel.unproven_count == 0
    front.channel.mode = constants.NORMAL
    front.arrive(known, 4)
    front.settle(acks(4))
    front.channel.close(0)
    assert front.channel.unproven_count == 0


# --- at the root


def settling(world: World) -> tuple[Any, Any, Any]:
    """Returns a channel that settles by place, a queue, and a consumer that has all of its messages."""
    queue = world.queue(logged=True, dead_letters=True)
    world.engine.term = 3
    world.put(queue, b"1", b"2", b"3", props=PERSISTENT)
    world.end_batch()
    return world.channel(mode=constants.CONFIRM), queue, world.channel()


def test_deliveries_carry_the_place_of_the_message(world: World) -> None:
    _, queue, channel = settling(world)
    world.consumer(channel, queue).identified = True
    world.end_batch()
    frames = split_frames(channel.session.take())
    places = [struct.unpack(">QQ", payload[-16:]) for kind, _, payload in frames if kind == 1]
    assert places == [(1, 3), (2, 3), (3, 3)]
    assert [channel.place_of(tag) for tag in (1, 3, 9)] == [(1, 3), (3, 3), (0, 0)]


def test_a_ready_message_is_settled_by_place_and_logged(world: World) -> None:
    channel, queue, _ = settling(world)
    assert channel.settle_place(queue, 2, 3, ACK) == SETTLED
    assert channel.settle_place(queue, 2, 3, ACK) == ABSENT
    assert channel.settle_place(queue, 3, 2, ACK) == ABSENT
    assert channel.settle_place(queue, 9, 3, ACK) == ABSENT
    assert [entry[:2] for entry in queue.snapshot()] == [(1, 3), (3, 3)]
    assert world.end_batch() is not None
    assert channel.settle_place(queue, 3, 3, REJECT) == SETTLED
    assert (queue.acked, queue.dropped, len(world.engine.dead)) == (1, 1, 1)
    assert (queue.ready_count, world.engine.held_messages) == (1, 1)


def test_a_confirm_waits_for_earlier_settlements(world: World) -> None:
    channel, queue, _ = settling(world)
    channel.settle_place(queue, 1, 3, ACK)
    world.feed(channel.session, publish(b"nobody"))
    world.end_batch(commit=False)
    assert read(channel.session.take()) == []
    world.engine.committed(world.index)
    assert len(read(channel.session.take())) == 1


@pytest.mark.parametrize("method_id", [ACK, REJECT])
@pytest.mark.parametrize("end", ["ack", "nack", "close"])
def test_a_message_of_another_consumer_is_settled_and_stays_in_its_window(
    world: World, method_id: int, end: str
) -> None:
    channel, queue, other = settling(world)
    consumer = world.consumer(other, queue, prefetch=2)
    assert [one.body for one in world.run(other.session)] == [b"1", b"2"]
    assert channel.settle_place(queue, 1, 3, method_id) == ABSENT
    assert channel.settle_elsewhere(other, 1, method_id)
    assert not channel.settle_elsewhere(other, 5, method_id)
    # The client still has it: there is no room for another one.
    assert (queue.unacked_count, consumer.unacked_count, other.unacked_count) == (1, 2, 2)
    assert world.run(other.session) == []
    world.take_dead()
    if end == "close":
        other.close(0)
    else:
        world.feed(other.session, ack(1) if end == "ack" else nack(1, False, True))
        assert world.events == []
        assert [one.body for one in world.run(other.session)] == [b"3"]
        assert other.outstanding(0, True) == [2, 3]
    expected = [2, 3] if end == "close" else []
    assert [entry[0] for entry in queue.snapshot()] == expected
    assert queue.unacked_count == 2 - len(expected)
    assert world.engine.held_messages == 2
    world.check_if_plain()


def test_a_message_in_a_page_is_settled_by_place(world: World) -> None:
    world.use_pages()
    queue, channel = world.queue(logged=True), world.channel()
    for term in (3, 4):
        world.engine.term = term
        for number in range(20):
            world.put(queue, b"%d" % number, props=PERSISTENT)
    world.end_batch()
    assert world.page_out()
    in_memory = {entry[0] for entry in queue.snapshot()}
    paged = [sequence for sequence in range(1, 41) if sequence not in in_memory]
    results = {sequence: channel.settle_place(queue, sequence, 3, ACK) for sequence in paged}
    assert {sequence for sequence, result in results.items() if result == SETTLED} <= set(range(1, 21))
    assert {sequence for sequence, result in results.items() if result == ABSENT} <= set(range(21, 41))
    assert set(results.values()) == {SETTLED, ABSENT}, "all of a page have one term"
    assert queue.ready_count == 40 - list(results.values()).count(SETTLED)
    rejected = [channel.settle_place(queue, sequence, 4, REJECT) for sequence in paged if sequence > 20]
    assert set(rejected) == {PLACE_UNKNOWN}


def test_streams_and_deleted_queues_have_nothing_to_settle(world: World) -> None:
    channel, queue, _ = settling(world)
    stream = world.queue(logged=True, stream=True)
    queue.delete()
    assert (channel.settle_place(queue, 1, 3, ACK), channel.settle_place(stream, 1, 3, ACK)) == (ABSENT, ABSENT)


def test_places_are_scanned(kernel: ModuleType) -> None:
    for data in (
        deliver(b"one", 5, b"a", place=(2**64 - 1, 7)),
        deliver(b"one", 5, b"long" * 9, chunk=7, place=(8, 9)),
    ):
        (run,) = kernel.Scanner(4096, 100, inward=True).feed(data)
        message = run[0][4]
        assert (message.number, message.producer) in ((2**64 - 1, 7), (8, 9))
        assert message.routing_key == "k"
