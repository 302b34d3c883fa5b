"""Leases of queues: messages that are read by offset, as often as wanted, until they are released or go back."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds
from pandomq.broker.leases.leases import OFFSETS_PER_MS
from pandomq.broker.log.commands import DeleteVhost, PutPermissions, PutVhost
from pandomq.broker.views import queue_view
from pandomq.errors import Fault
from pandomq.limits import LEASE_MESSAGES_MAX, LEASE_MOVE_MESSAGES_MAX, LEASES_MAX
from pandomq.properties import Properties
from tests.unit.broker.conversation import NOW_MS, World
from tests.unit.broker.lease_scene import BYTES_MAX, TIMEOUT_MS, Lessee, bodies, drained, filled, taken_over


def test_leased_messages_can_be_read_again_and_again() -> None:
    world, peer = filled(10)
    lessee = Lessee(world)
    view = lessee.lease(4)
    assert (view.end_offset - view.first_offset, view.stream, view.more) == (4, "pandomq.lease.job.q", False)
    assert lessee.read() == lessee.read() == bodies(0, 4)
    assert peer.counts() == (6, 0)
    assert drained(peer) == [(body, False) for body in bodies(4, 10)]


def test_more_is_leased_as_far_as_there_is_room() -> None:
    world, _ = filled(10)
    lessee = Lessee(world)
    first = lessee.lease(4)
    assert lessee.lease(4).end_offset == first.end_offset, "it has four already"
    more = lessee.lease(6)
    assert (more.first_offset, more.end_offset) == (first.first_offset, first.end_offset + 2)
    assert lessee.read() == bodies(0, 6)
    lessee.release(first.end_offset)
    after = lessee.lease(6)
    assert (after.first_offset, after.end_offset) == (first.end_offset, first.end_offset + 6)
    assert lessee.read() == bodies(4, 10)


def test_bytes_are_limited_and_the_last_message_may_exceed_them() -> None:
    world, peer = filled(0)
    for size in (100, 100, 5000, 100):
        peer.publish("", "q", bytes(size))
    lessee = Lessee(world)
    assert lessee.lease(10, bytes_max=150).end_offset - lessee.answers[-1].first_offset == 2
    view = lessee.lease(10, bytes_max=1000)
    assert view.end_offset - view.first_offset == 3 and not view.more
    assert lessee.lease(10, bytes_max=1000) == view
    assert lessee.lease(10).end_offset == view.end_offset + 1


def test_one_request_leases_at_most_one_batch_and_reports_that_there_is_more() -> None:
    world, _ = filled(LEASE_MOVE_MESSAGES_MAX + 10)
    lessee = Lessee(world)
    view = lessee.lease(LEASE_MESSAGES_MAX)
    assert view.end_offset - view.first_offset == LEASE_MOVE_MESSAGES_MAX and view.more
    view = lessee.lease(LEASE_MESSAGES_MAX)
    assert view.end_offset - view.first_offset == LEASE_MOVE_MESSAGES_MAX + 10 and not view.more
    assert lessee.read() == bodies(0, LEASE_MOVE_MESSAGES_MAX + 10)


def test_released_messages_are_gone_and_the_others_come_back() -> None:
    world, peer = filled(10)
    lessee = Lessee(world)
    view = lessee.lease(6)
    assert lessee.release(view.first_offset + 4).first_offset == view.first_offset + 4
    assert lessee.release(view.first_offset + 2).first_offset == view.first_offset + 4, "released once is enough"
    lessee.end()
    assert not lessee.is_there
    assert world.broker.streams.find("/", view.stream) is None
    assert drained(peer) == [(body, True) for body in bodies(4, 6)] + [(body, False) for body in bodies(6, 10)]


def test_everything_released_leaves_an_empty_lease_that_ends() -> None:
    world, peer = filled(3)
    lessee = Lessee(world)
    view = lessee.lease()
    lessee.release(view.end_offset)
    assert lessee.is_there
    lessee.end()
    assert not lessee.is_there and drained(peer) == []


def test_a_lease_ends_without_requests() -> None:
    world, peer = filled(5)
    lessee = Lessee(world)
    lessee.lease(3)
    world.pass_time(TIMEOUT_MS - 1)
    assert lessee.is_there
    world.pass_time(1)
    assert not lessee.is_there
    assert drained(peer) == [(b"m0", True), (b"m1", True), (b"m2", True), (b"m3", False), (b"m4", False)]


@pytest.mark.parametrize("ask", ["lease", "release", "read"])
def test_any_ask_renews_it(ask: str) -> None:
    world, _ = filled(5)
    lessee = Lessee(world)
    view = lessee.lease(3)
    for _ in range(3):
        world.pass_time(TIMEOUT_MS - 1)
        if ask == "lease":
            lessee.lease(3)
        elif ask == "release":
            lessee.release(view.first_offset)
        else:
            world.broker.leases.renew("/", view.stream, world.now_ms)
    assert lessee.is_there
    world.pass_time(TIMEOUT_MS)
    assert not lessee.is_there


def test_the_newest_timeout_holds() -> None:
    world, _ = filled(5)
    lessee = Lessee(world)
    lessee.lease(3, timeout_ms=5_000)
    lessee.lease(3, timeout_ms=60_000)
    world.pass_time(59_999)
    assert lessee.is_there
    world.pass_time(1)
    assert not lessee.is_there


def test_a_lease_that_comes_again_uses_no_offset_twice() -> None:
    world, _ = filled(5)
    lessee = Lessee(world)
    before = lessee.lease(3)
    assert before.first_offset == NOW_MS * OFFSETS_PER_MS
    lessee.end()
    world.pass_time(1)
    again = lessee.lease(3)
    assert again.first_offset == (NOW_MS + 1) * OFFSETS_PER_MS > before.end_offset
    assert lessee.read() == bodies(0, 3)
    stream = world.broker.streams.find("/", again.stream)
    assert stream is not None
    found: list[bytes | None] = []
    stream.read(before.first_offset, found.append)
    assert found == [None]


def test_two_leases_of_a_queue_share_nothing() -> None:
    world, peer = filled(6)
    one, two = Lessee(world, name="one"), Lessee(world, name="two")
    one.lease(2)
    two.lease(2)
    assert (one.read(), two.read()) == (bodies(0, 2), bodies(2, 4))
    two.end()
    assert one.is_there
    one.end()
    assert [body for body, _ in drained(peer)] == bodies(0, 6)


def test_consumers_work_on_the_queue_meanwhile() -> None:
    world, peer = filled(4)
    lessee = Lessee(world)
    lessee.lease(3)
    peer.call(methods.BasicQos(0, 2, False), expect=methods.BasicQosOk)
    peer.consume()
    assert peer.bodies() == [b"m3"]
    peer.publish("", "q", b"m4")
    assert peer.bodies() == [b"m4"]
    peer.publish("", "q", b"m5")
    lessee.end()
    peer.send(methods.BasicAck(0, True))
    assert peer.bodies() == [b"m0", b"m1"], "what comes back is in front"
    peer.send(methods.BasicAck(0, True))
    assert peer.bodies() == [b"m2", b"m5"]


def test_a_waiting_consumer_goes_first() -> None:
    world, peer = filled(0)
    peer.consume()
    lessee = Lessee(world)
    peer.publish("", "q", b"m0")
    view = lessee.lease()
    assert view.first_offset == view.end_offset and not view.more
    assert peer.bodies() == [b"m0"]


def test_leased_messages_count_as_unacked() -> None:
    world, peer = filled(5)
    queue = world.broker.state.vhosts["/"].queues["q"]
    lessee = Lessee(world)
    view = lessee.lease(3)

    def counts() -> tuple[int, int, int]:
        row = queue_view(world.broker, queue)
        return row.ready, row.unacked, row.acked

    assert counts() == (2, 3, 0)
    assert [lease.name for lease in world.broker.leases.of_queue(queue)] == ["job"]
    lessee.release(view.first_offset + 2)
    assert counts() == (2, 1, 2)
    lessee.end()
    assert counts() == (3, 0, 2)
    assert peer.call(methods.QueuePurge("q"), expect=methods.QueuePurgeOk).message_count == 3


def test_a_purge_leaves_it_alone() -> None:
    world, peer = filled(5)
    lessee = Lessee(world)
    lessee.lease(3)
    assert peer.call(methods.QueuePurge("q"), expect=methods.QueuePurgeOk).message_count == 2
    assert lessee.read() == bodies(0, 3)
    lessee.end()
    assert [body for body, _ in drained(peer)] == bodies(0, 3)


def test_with_the_queue_it_goes() -> None:
    world, peer = filled(5)
    lessee = Lessee(world)
    view = lessee.lease(3)
    assert peer.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk).message_count == 2
    assert not lessee.is_there and world.broker.streams.find("/", view.stream) is None
    world.pass_time(2 * TIMEOUT_MS)
    for ask in (lambda: lessee.lease(3), lambda: lessee.release(view.end_offset), lessee.end):
        with pytest.raises(Fault, match="404"):
            ask()


def test_a_queue_with_leased_messages_is_in_use() -> None:
    world, _ = filled(2, arguments={"x-expires": 1000})
    lessee = Lessee(world)
    view = lessee.lease(2, timeout_ms=5_000)
    world.pass_time(4_000)
    assert "q" in world.broker.state.vhosts["/"].queues
    lessee.release(view.end_offset)
    world.pass_time(3_000)
    assert "q" not in world.broker.state.vhosts["/"].queues


def test_a_request_to_a_lease_that_ends_is_refused() -> None:
    world, _ = filled(5, late=True)
    lessee = Lessee(world)
    lessee.ask(3)
    world.commit()
    view = lessee.answers[-1]
    lessee.end()
    with pytest.raises(LeaseEnds):
        lessee.ask(3)
    with pytest.raises(LeaseEnds):
        lessee.release(view.end_offset)
    lessee.end()
    world.commit()
    world.commit()
    assert not lessee.is_there


def test_nothing_is_answered_or_read_before_it_is_committed() -> None:
    world, peer = filled(5, late=True)
    lessee = Lessee(world)
    lessee.ask(2)
    stream = world.broker.streams.find("/", "pandomq.lease.job.q")
    assert stream is not None and not lessee.answers and stream.is_empty
    peer.hear()
    peer.consume()
    world.commit(world.committed_index)
    assert peer.bodies() == [], "what is behind it waits for the log, too"
    world.commit()
    assert lessee.read() == bodies(0, 2)
    assert peer.bodies() == bodies(2, 5)


@pytest.mark.parametrize(
    ("name", "messages_max", "bytes_max", "timeout_ms", "text"),
    [
        ("", 1, 1, 1000, "name"),
        ("a.b", 1, 1, 1000, "name"),
        ("a" * 201, 1, 1, 1000, "name"),
        ("a", -1, 1, 1000, "messages_max"),
        ("a", LEASE_MESSAGES_MAX + 1, 1, 1000, "messages_max"),
        ("a", 1, 2**31, 1000, "bytes_max"),
        ("a", 1, 1, 999, "timeout_ms"),
    ],
)
def test_requests_for_a_lease_with_wrong_values_are_refused(
    name: str, messages_max: int, bytes_max: int, timeout_ms: int, text: str
) -> None:
    world, _ = filled(1)
    with pytest.raises(Fault, match=f"406.*{text}"):
        Lessee(world, name=name).lease(messages_max, bytes_max=bytes_max, timeout_ms=timeout_ms)


def test_queues_that_cannot_be_leased() -> None:
    world, peer = filled(1)
    peer.declare("mine", exclusive=True)
    peer.declare("s", durable=True, arguments={"x-queue-type": "stream"})
    peer.declare("single", durable=True, arguments={"x-queue-type": "quorum", "x-single-active-consumer": True})
    peer.declare("local", durable=True, arguments={"x-replicate": "configuration"})
    for queue, code in (("mine", "405"), ("s", "540"), ("single", "540"), ("local", "540"), ("none", "404")):
        with pytest.raises(Fault, match=code):
            Lessee(world, queue).lease()
    view = Lessee(world).lease()
    with pytest.raises(Fault, match="406"):
        Lessee(world).release(view.end_offset + 1)
    ask = LeaseAsk("elsewhere", "q", "job", "guest", 1, BYTES_MAX, TIMEOUT_MS)
    with pytest.raises(Fault, match="404"):
        world.broker.leases.lease(ask, lambda view: None, world.now_ms)


def test_the_number_of_leases_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LEASES_MAX >= 1000
    monkeypatch.setattr("pandomq.broker.leases.leases.LEASES_MAX", 2)
    world, _ = filled(1)
    Lessee(world, name="a").lease()
    Lessee(world, name="b").lease()
    with pytest.raises(Fault, match="406"):
        Lessee(world, name="c").lease()
    Lessee(world, name="a").end()
    Lessee(world, name="c").lease()


def test_the_stream_of_a_lease_names_its_queue() -> None:
    world, _ = filled(1)
    view = Lessee(world).lease()
    assert world.broker.leases.queue_of("/", view.stream) == "q"
    for stream in ("q", "pandomq.lease.other.q", "pandomq.lease.", "pandomq.lease.job", "job.q"):
        assert world.broker.leases.queue_of("/", stream) is None
    assert world.broker.leases.queue_of("elsewhere", view.stream) is None


def test_no_client_finds_the_stream() -> None:
    world, peer = filled(1)
    view = Lessee(world).lease()
    assert peer.refused(methods.QueueDeclare(view.stream, passive=True)).reply_code == 404
    peer.call(methods.QueueDelete(view.stream), expect=methods.QueueDeleteOk)
    assert Lessee(world).read(view) == bodies(0, 1)


def test_a_transient_message_is_leased_as_any_other() -> None:
    world, peer = filled(3, properties=Properties(delivery_mode=1))
    lessee = Lessee(world)
    lessee.lease(2)
    assert lessee.read() == bodies(0, 2)
    lessee.end()
    assert [body for body, _ in drained(peer)] == bodies(0, 3)


def test_after_a_restart_numbers_of_leased_transient_messages_are_given_to_no_others() -> None:
    world, _ = filled(2, properties=Properties(delivery_mode=1))
    lessee = Lessee(world)
    lessee.lease(2)
    other = taken_over(world)
    peer = other.peer()
    peer.publish("", "q", b"m2", Properties(delivery_mode=2))
    assert [entry[0] for entry in other.broker.state.vhosts["/"].queues["q"].kernel.snapshot()] == [3]
    Lessee(other).end()
    assert [body for body, _ in drained(peer)] == bodies(0, 3)


def test_a_deleted_vhost_takes_its_leases_along() -> None:
    world = World()
    world.administer(PutVhost("v"), PutPermissions("v", "guest", ".*", ".*", ".*"))
    peer = world.peer(vhost="v")
    peer.declare("q", durable=True)
    peer.publish("", "q", b"m0")
    world.broker.leases.lease(
        LeaseAsk("v", "q", "job", "guest", 10, BYTES_MAX, TIMEOUT_MS), lambda view: None, world.now_ms
    )
    world.run([])
    assert world.broker.leases.queue_of("v", "pandomq.lease.job.q") == "q"
    world.administer(DeleteVhost("v"))
    assert not len(world.broker.state.leases)
    world.pass_time(2 * TIMEOUT_MS)
