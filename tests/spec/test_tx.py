"""tx.select, tx.commit, tx.rollback over publishes and acks."""

from __future__ import annotations

import pytest

from tests.support.client import Channel

NOT_TRANSACTIONAL = "PRECONDITION_FAILED - channel is not transactional"


@pytest.fixture
def tx(channel: Channel) -> Channel:
    channel.rpc("tx.select")
    return channel


@pytest.fixture
def plain(channel: Channel) -> Channel:
    return channel.connection.channel()


def test_select_is_answered_each_time(channel: Channel) -> None:
    channel.rpc("tx.select")
    channel.rpc("tx.select")


@pytest.mark.parametrize("method", ["tx.commit", "tx.rollback"])
def test_select_has_to_come_first(channel: Channel, method: str) -> None:
    channel.refused(406, NOT_TRANSACTIONAL, method)


def test_not_in_confirm_mode(channel: Channel) -> None:
    channel.rpc("confirm.select")
    channel.refused(406, "PRECONDITION_FAILED - cannot switch from confirm to tx mode", "tx.select")


@pytest.mark.parametrize("method", ["tx.commit", "tx.rollback"])
def test_an_empty_transaction(tx: Channel, method: str) -> None:
    tx.rpc(method)
    tx.rpc(method)


def test_publishes_are_seen_after_the_commit(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    for number in range(3):
        tx.publish(str(number), queue)
    tx.expect_nothing()
    assert plain.counts(queue) == (0, 0)
    tx.rpc("tx.commit")
    assert plain.drain(queue) == [b"0", b"1", b"2"]


def test_publishes_to_several_queues_are_seen_together(tx: Channel, plain: Channel, name: str) -> None:
    queues = [tx.declare_queue(f"{name}-{number}", exclusive=False, durable=bool(number % 2)) for number in range(4)]
    for queue in queues:
        plain.consume(queue, no_ack=True)
        tx.publish(queue, queue, delivery_mode=2)
    plain.expect_nothing()
    tx.rpc("tx.commit")
    assert sorted(plain.bodies(4)) == sorted(queue.encode() for queue in queues)


def test_rollback_forgets_publishes(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    tx.publish("forgotten", queue)
    tx.rpc("tx.rollback")
    tx.publish("kept", queue)
    tx.rpc("tx.commit")
    tx.rpc("tx.commit")
    assert plain.drain(queue) == [b"kept"]


@pytest.mark.parametrize("answer", ["basic.ack", "basic.nack", "basic.reject"])
def test_acks_count_after_the_commit(tx: Channel, plain: Channel, answer: str) -> None:
    queue = tx.declare_queue()
    for number in range(3):
        plain.publish(str(number), queue)
    plain.expect_nothing()
    for _ in range(3):
        assert tx.get(queue, no_ack=False) is not None
    tx.send(answer, delivery_tag=1)
    tx.rpc("tx.commit")
    tx.send(answer, delivery_tag=2)
    tx.rpc("channel.close", reply_code=200)
    assert plain.drain(queue) == [b"1", b"2"], "what was not committed comes back"


def test_rollback_leaves_messages_unacked(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    plain.publish("m", queue)
    plain.expect_nothing()
    assert tx.get(queue, no_ack=False) is not None
    tx.send("basic.ack", delivery_tag=1)
    tx.rpc("tx.rollback")
    assert plain.counts(queue) == (0, 0), "a rollback does not requeue"
    tx.send("basic.ack", delivery_tag=1)
    tx.rpc("tx.commit")
    tx.rpc("channel.close", reply_code=200)
    assert plain.drain(queue) == []


def test_a_requeue_takes_place_at_the_commit(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    plain.publish("m", queue)
    plain.expect_nothing()
    assert tx.get(queue, no_ack=False) is not None
    tx.send("basic.nack", delivery_tag=1, requeue=True)
    tx.expect_nothing()
    assert plain.counts(queue) == (0, 0)
    tx.rpc("tx.commit")
    again = plain.get(queue)
    assert again is not None
    assert again.redelivered is True


def test_consume_and_produce_in_one_transaction(tx: Channel, plain: Channel) -> None:
    source, target = tx.declare_queue(), tx.declare_queue()
    for number in range(5):
        plain.publish(str(number), source)
    plain.expect_nothing()
    for number in range(5):
        found = tx.get(source, no_ack=False)
        assert found is not None
        tx.publish(b"done " + found.body, target)
        tx.send("basic.ack", delivery_tag=found.delivery_tag)
        tx.rpc("tx.commit" if number % 2 == 0 else "tx.rollback")
    assert plain.drain(target) == [b"done 0", b"done 2", b"done 4"]
    tx.rpc("channel.close", reply_code=200)
    assert plain.drain(source) == [b"1", b"3"]


def test_a_closed_channel_rolls_back(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    tx.publish("m", queue)
    tx.rpc("channel.close", reply_code=200)
    assert plain.counts(queue) == (0, 0)


def test_returns_come_at_the_commit(tx: Channel, name: str) -> None:
    tx.publish("m", name, mandatory=True)
    tx.expect_nothing()
    tx.send("tx.commit")
    assert tx.expect("basic.return").body == b"m"
    tx.expect("tx.commit-ok")


def test_returns_of_a_rollback_never_come(tx: Channel, name: str) -> None:
    tx.publish("m", name, mandatory=True)
    tx.rpc("tx.rollback")
    tx.rpc("tx.commit")
    tx.expect_nothing()


def test_an_exchange_that_is_missing_is_an_error_at_once(tx: Channel, name: str) -> None:
    tx.publish("m", "k", name)
    tx.expect_close(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'", "basic.publish")


def test_an_unknown_tag_is_an_error_at_once(tx: Channel) -> None:
    tx.refused(406, "PRECONDITION_FAILED - unknown delivery tag 9", "basic.ack", delivery_tag=9)


def test_an_error_rolls_back(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    tx.publish("m", queue)
    tx.refused(406, "PRECONDITION_FAILED - unknown delivery tag 9", "basic.ack", delivery_tag=9)
    assert plain.counts(queue) == (0, 0)


def test_declares_are_not_part_of_it(tx: Channel, plain: Channel, name: str) -> None:
    tx.declare_queue(name)
    tx.rpc("tx.rollback")
    assert plain.counts(name) == (0, 0)


@pytest.mark.ours_only
@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_many_transactions_in_one_batch(tx: Channel, plain: Channel, how: str) -> None:
    queue = tx.declare_queue()
    count = 60 if how == "whole" else 9
    with tx.connection.in_segments(how):
        for number in range(count):
            tx.publish(str(number), queue)
            tx.send("tx.rollback" if number % 3 == 0 else "tx.commit")
    for number in range(count):
        tx.expect("tx.rollback-ok" if number % 3 == 0 else "tx.commit-ok")
    assert [int(body) for body in plain.drain(queue)] == [number for number in range(count) if number % 3]


def test_a_large_transaction(tx: Channel, plain: Channel) -> None:
    queue = tx.declare_queue()
    with tx.connection.in_segments("whole"):
        for number in range(2000):
            tx.publish(str(number) * 20, queue)
    tx.expect_nothing()
    assert plain.counts(queue) == (0, 0)
    tx.rpc("tx.commit")
    assert plain.counts(queue) == (2000, 0)
    assert plain.rpc("queue.purge", queue=queue).message_count == 2000


def test_a_queue_may_be_declared_before_the_commit(tx: Channel, plain: Channel, name: str) -> None:
    tx.publish("m", name)
    plain.declare_queue(name)
    tx.rpc("tx.commit")
    assert plain.drain(name) == [b"m"]


def test_a_queue_of_the_same_name_gets_messages_routed_to_the_old_one(tx: Channel, plain: Channel, name: str) -> None:
    plain.declare_queue(name)
    plain.rpc("queue.bind", queue=name, exchange="amq.direct", routing_key=name)
    tx.publish("by name", name)
    tx.publish("bound", name, "amq.direct")
    plain.rpc("queue.delete", queue=name)
    plain.declare_queue(name)
    tx.rpc("tx.commit")
    assert plain.drain(name) == [b"by name", b"bound"]


def test_dead_letters_of_a_transaction_come_with_the_commit(tx: Channel, plain: Channel, name: str) -> None:
    dead = plain.declare_queue(f"{name}-dead")
    source = plain.declare_queue(
        name, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    )
    plain.publish("m", source)
    plain.expect_nothing()
    found = tx.get(source, no_ack=False)
    assert found is not None
    tx.send("basic.reject", delivery_tag=found.delivery_tag, requeue=False)
    tx.expect_nothing()
    assert plain.counts(dead) == (0, 0)
    tx.rpc("tx.commit")
    assert plain.drain(dead) == [b"m"]
