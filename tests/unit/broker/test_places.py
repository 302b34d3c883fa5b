"""Settlements by place: only brokers speak of places."""

from __future__ import annotations

import struct

import pytest

from pandomq import methods
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot, StoredAt
from pandomq.properties import Properties
from tests.unit.broker.conversation import World
from tests.unit.cluster.proxy.pipe_world import Cluster

PERSISTENT = Properties(delivery_mode=2)


def row(queue_id: int, sequence: int, term: int) -> bytes:
    return struct.pack(">QQQB", queue_id, sequence, term, 80)


def test_a_client_knows_no_such_method() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    peer.publish("", "q", b"one", PERSISTENT)
    peer.send(methods.BasicSettle(1, row(1, 1, 0)))
    fault = peer.fault()
    assert (fault.reply_code, fault.class_id, fault.method_id) == (540, 60, 250)
    assert fault.reply_text == "NOT_IMPLEMENTED - unknown method 60.250"
    assert world.peer().counts() == (1, 0)


@pytest.mark.proves("R29")
def test_rows_of_a_broker_are_settled_and_the_number_comes_back_when_that_is_committed() -> None:
    cluster = Cluster(late=True)
    root = cluster.root
    assert root is not None
    peer = cluster.front.peer()
    peer.send(methods.QueueDeclare("q", durable=True))
    root.commit()
    cluster.settle()
    peer.publish("", "q", b"one", PERSISTENT)
    peer.publish("", "q", b"two", PERSISTENT)
    tunnel = next(pipe.client for pipe in cluster.front.pipes)
    queue = root.broker.state.vhosts["/"].queues["q"].kernel
    (first, *_), _ = queue.snapshot()
    for method in (methods.BasicSettle(7, row(queue.queue_id, first, 1) + row(99, 1, 1)), methods.BasicSettle(0, b"")):
        root.run([(tunnel, [methods.MethodInput(1, method)])])
    tunnel.session.take()
    assert queue.ready_count == 1
    root.commit()
    assert tunnel.session.take().endswith(struct.pack(">HHQ", 60, 251, 7) + b"\xce")


@pytest.mark.proves("R29")
def test_an_ack_finds_a_message_of_another_channel_though_consumers_count_settled_ones() -> None:
    """A delivery that was settled elsewhere still counts for its consumer, until that settles it, too."""
    cluster = Cluster()
    root = cluster.root
    assert root is not None
    cluster.front.peer().declare("q", durable=True)
    consumer, getter = root.peer(), root.peer()
    consumer.send(methods.BasicQos(0, 1, False))
    consumer.consume("q")
    for body in (b"one", b"two"):
        consumer.publish("", "q", body, PERSISTENT)
    got = getter.get("q", no_ack=False)
    assert got is not None and got.body == b"two"
    queue = root.broker.state.vhosts["/"].queues["q"].kernel
    tunnel = next(pipe.client for pipe in cluster.front.pipes)
    for holder in (consumer, getter):
        ((_, sequence, term, *_),) = holder.client.channels[1].kernel.unacked()
        root.run([(tunnel, [methods.MethodInput(1, methods.BasicSettle(0, row(queue.queue_id, sequence, term)))])])
    assert queue.unacked_count == 0
    consumer.leave()
    getter.leave()
    assert queue.ready_count == 0


def test_rows_that_are_cut_end_the_connection() -> None:
    cluster = Cluster()
    root = cluster.root
    assert root is not None
    cluster.front.peer().declare("q", durable=True)
    tunnel = next(pipe.client for pipe in cluster.front.pipes)
    root.run([(tunnel, [methods.MethodInput(1, methods.BasicSettle(0, row(1, 1, 1)[:-1]))])])
    assert root.closed[tunnel].reply_code == 501


def no_pages(stored_at: StoredAt) -> object:
    raise AssertionError(stored_at)


@pytest.mark.parametrize("from_snapshot", [False, True])
def test_an_ack_of_a_message_that_was_lost_with_its_root_is_not_proven(from_snapshot: bool) -> None:
    """The root of term 1 gave number 2 to a message and died with it. The root of term 3 gave number 2 to another one,
    which was consumed since. The root of term 4 knows all of this from the log, or from a snapshot of it."""
    author = World()
    peer = author.peer()
    peer.declare("q", durable=True)
    for number in range(3):
        peer.publish("", "q", bytes([number]), PERSISTENT)
    while (got := peer.get("q", no_ack=True)) is not None:
        assert got.body
    backup = World(seed=2)
    revival = Revival(backup.broker, no_pages)
    for index, entry in enumerate(author.entries, start=1):
        if from_snapshot and index == 4:
            halfway, backup = backup, World(seed=3)
            revival = Revival(backup.broker, no_pages)
            for piece in Snapshot(halfway.broker, exact=False).pieces(1000):
                revival.take(piece)
        revival.apply(index, 1 if index < 3 else 3, entry)
    root = backup
    root.broker.engine.term = 4
    revival.finish(root.now_ms, takeover=True)
    root.run([])
    tunnel = root.connect(origin="b")
    tunnel.send(methods.ChannelOpen(), methods.ConfirmSelect())
    # Number 1 was in the log of every root, and was consumed: an ack of it is in order.
    root.run([(tunnel.client, [methods.MethodInput(1, methods.BasicSettle(1, row(1, 1, 1)))])])
    assert 1 in tunnel.client.channels
    root.run([(tunnel.client, [methods.MethodInput(1, methods.BasicSettle(2, row(1, 2, 1)))])])
    assert tunnel.client.channels[1].closing
