"""A root that is cut off, or paused, continues for a moment with old state: no effect of that remains."""

from __future__ import annotations

import pytest

from tests.sim.scenarios.stage import ClosedByBrokerError, Loss, Stage


@pytest.mark.proves("R7")
def test_eager_delivery_takeover_the_same_number_for_another_message_a_late_ack() -> None:
    stage = Stage()
    old = stage.elect()
    publisher = stage.publisher(old)
    consumer = stage.client(old).channel()
    consumer.rpc("basic.consume", queue="q", consumer_tag="c")
    publisher.publish_confirmed(b"first", routing_key="q", delivery_mode=2)
    first = consumer.delivery()
    consumer.send("basic.ack", delivery_tag=first.delivery_tag, multiple=False)
    stage.run(50)

    # The root is cut off and does not know it yet: it delivers a message that it will never be able to confirm.
    stage.isolate(old)
    publisher.publish(b"of the old root", routing_key="q", delivery_mode=2)
    early = consumer.delivery()
    assert early.body == b"of the old root"
    taken = stage.broker(old).state.vhosts["/"].queues["q"].kernel.next_sequence - 1

    new = stage.elect(besides=old)
    second = stage.publisher(new)
    second.publish_confirmed(b"of the new root", routing_key="q", delivery_mode=2)
    rows = stage.broker(new).state.vhosts["/"].queues["q"].kernel.snapshot()
    assert [(row[0], row[5].body) for row in rows] == [(taken, b"of the new root")], "the number is used again"

    # The late ack contains that number, and refers to the other message.
    consumer.send("basic.ack", delivery_tag=early.delivery_tag, multiple=False)
    with pytest.raises(ClosedByBrokerError, match="no longer the root"):
        consumer.rpc("basic.qos", prefetch_count=1)
    stage.heal()
    stage.until(lambda: stage.machines[old].accepting, "backup")
    stage.level(new, *stage.others(new))
    assert second.drain("q") == [b"of the new root"]


@pytest.mark.proves("R7")
def test_a_pause_past_the_lease_with_client_bytes_in_the_socket() -> None:
    stage = Stage(lease_ms=300)
    old = stage.elect()
    publisher = stage.publisher(old)
    for number in range(5):
        publisher.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    worker = stage.client(old).channel()
    delivery = worker.get("q", no_ack=False)
    assert delivery is not None

    stage.machines[old].pause(3_000)
    publisher.publish(b"while nobody listens", routing_key="q", delivery_mode=2)
    worker.send("basic.ack", delivery_tag=delivery.delivery_tag, multiple=False)
    publisher.send("queue.delete", queue="q")
    new = stage.elect(besides=old)
    stage.publisher(new).publish_confirmed(b"next", routing_key="q", delivery_mode=2)

    # Its pause ends with all of that in its sockets, and it finds its lease expired before it reads any of it.
    with pytest.raises(ClosedByBrokerError, match="no longer the root"):
        publisher.confirmed()
    assert not stage.machines[old].serving
    stage.level(new, *stage.others(new))
    assert stage.client(new).channel().drain("q") == [b"0", b"1", b"2", b"3", b"4", b"next"]


@pytest.mark.proves("R8")
@pytest.mark.parametrize("after_ms", range(0, 14, 2))
def test_commit_in_doubt(after_ms: int) -> None:
    """Whenever the root dies, the transaction is applied as a whole or not at all, and so is its ack."""
    stage = Stage(seed=after_ms)
    old = stage.elect()
    publisher = stage.publisher(old)
    publisher.publish_confirmed(b"job", routing_key="q", delivery_mode=2)
    worker = stage.client(old).channel()
    worker.rpc("queue.declare", queue="results", durable=True)
    worker.rpc("tx.select")
    job = worker.get("q", no_ack=False)
    assert job is not None
    for part in (b"one", b"two", b"three"):
        worker.publish(part, routing_key="results", delivery_mode=2)
    worker.send("basic.ack", delivery_tag=job.delivery_tag, multiple=False)
    worker.send("tx.commit")
    stage.run(after_ms)
    heard = any(method.name == "tx.commit-ok" for method in worker.connection.methods_seen)
    stage.kill(old, Loss.ALL)

    channel = stage.client(stage.elect(besides=old)).channel()
    results, jobs = channel.drain("results"), channel.drain("q")
    assert (results, jobs) in (([b"one", b"two", b"three"], []), ([], [b"job"]))
    assert results or not heard


def test_queues_that_are_not_durable_outlive_a_root_that_restarts_while_another_broker_stays() -> None:
    """Clients of that broker continue, and have no reason to declare the queues again: the cluster was available."""
    stage = Stage(2)
    first = stage.elect()
    (other,) = stage.others(first)
    publisher = stage.publisher(first)
    publisher.rpc("queue.declare", queue="passing")
    publisher.publish_confirmed(b"x", routing_key="passing")
    stage.level(first, other)
    # The other broker lacks an entry, so only the restarted one can be elected.
    stage.isolate(first)
    publisher.publish(b"last", routing_key="q", delivery_mode=2)
    stage.run(50)
    stage.kill(first)
    stage.heal()
    stage.start(first)
    assert stage.elect() == first
    queues = stage.broker(first).state.vhosts["/"].queues
    assert "passing" in queues
    assert not queues["passing"].kernel.ready_count

    # If all brokers were down, the queue is gone.
    stage.level(first, other)
    stage.kill(first)
    stage.kill(other)
    stage.start(first, other)
    assert "passing" not in stage.broker(stage.elect()).state.vhosts["/"].queues
