"""Traces: what is written to the stream, when, and what becomes of it at the next root."""

import json

import pytest

from pandomq import limits, methods
from pandomq.broker.log.commands import DeleteVhost, PutPermissions, PutTracing, PutVhost
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from pandomq.properties import Properties
from pandomq.trace_form import TRACE_STREAM, Events, Kind, decode_events
from tests.unit.broker.conversation import World
from tests.unit.broker.durable_view import durable_view

PERSISTENT = Properties(delivery_mode=2)


def traced_world(sample: float = 1.0, *, late: bool = False) -> World:
    world = World()
    assert world.administer(PutTracing("/", sample)) is None
    world.late = late
    return world


def batches(world: World, vhost: str = "/") -> list[Events]:
    chunk = world.broker.state.vhosts[vhost].queues[TRACE_STREAM].kernel.open_chunk
    assert chunk is not None
    return [decode_events(chunk.row(place)[5]) for place in range(chunk.count)]


def test_each_step_of_a_message_is_in_the_stream() -> None:
    world = traced_world()
    peer = world.peer()
    peer.declare("q", durable=True)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("", "q", b"body", PERSISTENT).publish("", "nowhere")
    peer.consume("q", "t")
    peer.send(methods.BasicAck(1))
    world.pass_time(limits.TRACE_BATCH_AGE_MS)
    (batch,) = batches(world)
    assert (batch.broker, batch.number, batch.dropped, batch.sample) == ("n1", 0, 0, 1.0)
    found = [(row.kind, row.queue, row.routing_key, row.consumer_tag, row.connection) for row in batch.rows()]
    assert found == [
        (Kind.PUBLISHED, "q", "q", "", ""),
        (Kind.CONFIRMED, "q", "q", "", ""),
        (Kind.UNROUTABLE, "", "nowhere", "", ""),
        (Kind.DELIVERED, "q", "q", "t", "127.0.0.1:1"),
        (Kind.ACKED, "q", "q", "t", "127.0.0.1:1"),
    ]
    assert set(batch.time_us) == {world.now_ms * 1000 - limits.TRACE_BATCH_AGE_MS * 1000}


def test_no_events_are_gathered_without_tracing() -> None:
    world = traced_world()
    assert world.administer(PutVhost("v"), PutPermissions("v", "guest", ".*", ".*", ".*")) is None
    peer = world.peer(vhost="v")
    peer.declare("q")
    peer.publish("", "q")
    world.pass_time(10_000)
    assert batches(world) == []
    assert TRACE_STREAM not in world.broker.state.vhosts["v"].queues


def test_existing_clients_are_traced_while_tracing_is_on() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q")
    assert world.administer(PutTracing("/", 1.0)) is None
    peer.publish("", "q").publish("", "nowhere")
    world.pass_time(1_000)
    assert world.administer(PutTracing("/", 0.0)) is None
    peer.publish("", "q").publish("", "nowhere")
    world.pass_time(1_000)
    (batch,) = batches(world)
    assert [(row.kind, row.sequence) for row in batch.rows()] == [
        (Kind.PUBLISHED, 2),
        (Kind.UNROUTABLE, 1),
    ]


def test_the_stream_of_traces_is_not_traced() -> None:
    world = traced_world()
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q")
    world.pass_time(1_000)
    peer.call(methods.BasicQos(0, 10), expect=methods.BasicQosOk)
    peer.consume(TRACE_STREAM, "reader", arguments={"x-stream-offset": "first"})
    assert len(peer.bodies()) == 1
    world.pass_time(10_000)
    assert len(batches(world)) == 1


def test_a_batch_is_written_before_its_time_if_there_is_enough() -> None:
    world = traced_world()
    peer = world.peer()
    peer.declare("q")
    for _ in range(limits.TRACE_BATCH_BYTES // 50 // 100 + 2):
        for _ in range(100):
            peer.say_publish("", "q")
        peer.flush()
    assert len(batches(world)) == 1


def test_while_nothing_is_committed_batches_wait() -> None:
    world = traced_world(late=True)
    peer = world.connect()
    peer.send(methods.ChannelOpen(), methods.QueueDeclare("q"))
    for _ in range(20):
        peer.publish("", "q")
        world.pass_time(limits.TRACE_BATCH_AGE_MS)
    assert len(batches(world)) == limits.TRACE_BATCHES_UNCOMMITTED_MAX
    world.commit()
    world.pass_time(limits.TRACE_BATCH_AGE_MS)
    written = batches(world)
    assert len(written) == limits.TRACE_BATCHES_UNCOMMITTED_MAX + 1
    assert sum(len(batch) for batch in written) == 20
    assert [batch.number for batch in written] == list(range(len(written)))


def test_the_setting_and_the_stream_are_shared() -> None:
    world = traced_world(0.25)
    other = world.replayed()
    assert durable_view(other.broker) == durable_view(world.broker)
    assert other.broker.state.vhosts["/"].trace_sample == 0.25
    revived = World(seed=3)
    revived.broker.state.vhosts["/"].access.clear()
    revival = Revival(revived.broker, lambda place: None)
    for piece in Snapshot(world.broker, exact=True).pieces(10_000):
        revival.take(piece)
    assert revived.broker.state.vhosts["/"].trace_sample == 0.25


def test_a_follower_continues_the_trace_when_it_becomes_root() -> None:
    world = traced_world()
    peer = world.peer()
    peer.declare("q", durable=True)
    peer.publish("", "q", b"a", PERSISTENT)
    world.pass_time(1_000)
    other = world.replayed()
    assert len(batches(other)) == 1
    (batch,) = batches(other)
    assert [row.kind for row in batch.rows()] == [Kind.PUBLISHED]
    taker = other.peer()
    assert taker.get("q") is not None
    other.pass_time(1_000)
    assert [(row.kind, row.sequence, row.since_us) for row in batches(other)[-1].rows()] == [(Kind.DELIVERED, 1, -1)]


def test_events_of_brokers_are_written_to_the_trace_of_every_traced_vhost() -> None:
    world = traced_world()
    assert world.administer(PutVhost("v"), PutTracing("v", 0.01), PutVhost("w")) is None
    # Nobody asks anything of the broker meanwhile.
    world.broker.tracing.note("elected", broker="n2", term=4)
    world.pass_time(1_000)
    for vhost in ("/", "v"):
        ((row,),) = [list(batch.rows()) for batch in batches(world, vhost)]
        assert row.kind == Kind.CLUSTER
        assert json.loads(row.text) == {"event": "elected", "broker": "n2", "term": 4}


def test_too_much_that_happens_to_the_brokers_is_counted() -> None:
    world = traced_world()
    for number in range(limits.TRACE_NOTICES_MAX + 3):
        world.broker.tracing.note("in-sync", broker=f"n{number}")
    world.run([])
    world.pass_time(1_000)
    (batch,) = batches(world)
    assert (len(batch), batch.dropped) == (limits.TRACE_NOTICES_MAX, 3)


def test_a_broker_that_is_not_root_writes_no_trace() -> None:
    world = traced_world()
    world.broker.tracing.writes = False
    world.broker.tracing.note("in-sync", broker="n1")
    world.run([])
    world.pass_time(1_000)
    assert batches(world) == []


def test_the_trace_stream_is_declared_again_after_it_was_deleted() -> None:
    world = traced_world()
    peer = world.peer()
    peer.declare("q")
    peer.call(methods.QueueDelete(TRACE_STREAM), expect=methods.QueueDeleteOk)
    peer.publish("", "q")
    world.pass_time(1_000)
    assert [len(batch) for batch in batches(world)] == [1]


def test_a_queue_in_its_place_is_refused_or_does_without() -> None:
    world = World()
    peer = world.peer()
    peer.declare(TRACE_STREAM)
    fault = world.administer(PutTracing("/", 1.0))
    assert fault is not None
    assert (fault.reply_code, fault.reply_text) == (
        406, "'pandomq.trace' is reserved for traces, but a queue with this name exists: delete it first"
    )  # fmt: skip


def test_events_that_could_not_be_written_are_counted_in_the_next_batch() -> None:
    world = traced_world()
    peer = world.peer()
    peer.call(methods.QueueDelete(TRACE_STREAM), expect=methods.QueueDeleteOk)
    peer.declare(TRACE_STREAM)
    peer.declare("q")
    peer.publish("", "q")
    world.pass_time(1_000)
    peer.call(methods.QueueDelete(TRACE_STREAM), expect=methods.QueueDeleteOk)
    peer.publish("", "q")
    world.pass_time(1_000)
    (batch,) = batches(world)
    assert (len(batch), batch.dropped) == (1, 1)


@pytest.mark.parametrize("sample", [-0.1, 1.1, float("nan")])
def test_a_sample_is_a_part(sample: float) -> None:
    fault = World().administer(PutTracing("/", sample))
    assert fault is not None
    assert fault.reply_code == 406
    assert fault.reply_text.startswith("a sample must be between 0 and 1")


def test_a_vhost_that_is_unknown_cannot_be_traced() -> None:
    fault = World().administer(PutTracing("nowhere", 1.0))
    assert fault is not None
    assert fault.reply_code == 404


def test_the_trace_of_a_deleted_vhost_ends() -> None:
    world = World()
    assert world.administer(PutVhost("v"), PutPermissions("v", "guest", ".*", ".*", ".*")) is None
    assert world.administer(PutTracing("v", 1.0)) is None
    peer = world.peer(vhost="v")
    peer.declare("q")
    peer.publish("", "q")
    assert world.administer(DeleteVhost("v")) is None
    world.pass_time(10_000)
    assert not world.broker.tracing.traced
