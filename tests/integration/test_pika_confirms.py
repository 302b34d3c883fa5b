"""pika: publisher confirms (one by one, in a batch), mandatory returns, nacks, transactions."""

from __future__ import annotations

import pika
import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

from .broker_under_test import Names
from .conftest import Connect
from .pika_mailbox import Mailbox, put, take, take_all
from .waiting import barrier, pump


def test_each_publish_is_confirmed(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    for number in range(50):
        # pika raises if the broker sends anything but ack.
        channel.basic_publish("", queue, str(number).encode(), BasicProperties(delivery_mode=2), mandatory=True)
    assert channel.queue_declare(queue, passive=True).method.message_count == 50


def test_an_unroutable_message_is_confirmed(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    channel.basic_publish("amq.direct", "nobody is bound to this", b"into the void")


def test_an_unroutable_mandatory_message_comes_back_before_its_confirm(channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    properties = BasicProperties(message_id="m1", headers={"a": 1})
    with pytest.raises(UnroutableError) as caught:
        channel.basic_publish("amq.direct", "nobody", b"body", properties, mandatory=True)
    [returned] = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "nobody")
    assert (returned.properties.message_id, returned.properties.headers, returned.body) == ("m1", {"a": 1}, b"body")


@pytest.mark.proves("R38")
def test_a_message_that_was_published_before_confirms_were_asked_for_comes_back_before_their_answer(
    channel: BlockingChannel,
) -> None:
    """The sequence of pika's own TestConfirmDeliveryAfterUnroutableMessage, which looks into the channel: when
    confirm.select-ok has come, the returned message waits for the client's callbacks."""
    returned: list[tuple[int, str, bytes]] = []
    channel.add_on_return_callback(
        lambda _c, method, _p, body: returned.append((method.reply_code, method.routing_key, body))
    )
    channel.basic_publish("", "no such queue", b"body", mandatory=True)
    channel.confirm_delivery()
    # Callbacks are called for methods that have arrived; nothing is read from the socket.
    channel._dispatch_events()
    assert returned == [(312, "no such queue", b"body")]
    channel.connection.process_data_events()
    assert len(returned) == 1


def test_a_mandatory_message_comes_back_without_confirms_too(channel: BlockingChannel) -> None:
    returned: list[tuple[int, bytes]] = []
    channel.add_on_return_callback(lambda _c, method, _p, body: returned.append((method.reply_code, body)))
    channel.basic_publish("", "no such queue", b"large " * 100_000, mandatory=True)
    pump(channel.connection, lambda: returned, "the return")
    assert returned == [(312, b"large " * 100_000)]


def test_a_full_queue_that_rejects_publishes_nacks(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue("full")
    channel.queue_declare(queue, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    put(channel, queue, [b"1", b"2"])
    with pytest.raises(NackError):
        put(channel, queue, [b"3"])
    assert take(channel, queue).body == b"1"
    put(channel, queue, [b"4"])
    assert take_all(channel, queue) == [b"2", b"4"]


def test_one_refusing_queue_among_many_nacks_the_message(channel: BlockingChannel, names: Names) -> None:
    fanout, full, open_queue = names.exchange(), names.queue("full"), names.queue("open")
    channel.exchange_declare(fanout, "fanout")
    channel.queue_declare(full, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    channel.queue_declare(open_queue)
    for queue in (full, open_queue):
        channel.queue_bind(queue, fanout)
    channel.confirm_delivery()
    with pytest.raises(NackError):
        channel.basic_publish(fanout, "", b"m")
    assert take(channel, open_queue).body == b"m"
    assert take_all(channel, full) == []


def test_confirms_of_a_burst_cover_every_message_once(connection: pika.BlockingConnection, names: Names) -> None:
    """Confirms may be single or multiple; together they name each publish exactly once."""
    queue = names.queue()
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)
    impl = channel._impl
    outstanding: set[int] = set(range(1, 501))

    def on_confirm(frame: pika.frame.Method) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        tag = frame.method.delivery_tag
        named = {t for t in outstanding if t <= tag} if frame.method.multiple else {tag}
        assert tag in outstanding, "a confirm names a publish that was confirmed before"
        outstanding.difference_update(named)

    selected: list[object] = []
    impl.confirm_delivery(ack_nack_callback=on_confirm, callback=selected.append)
    pump(connection, lambda: selected, "confirm.select-ok")
    for number in range(500):
        impl.basic_publish("", queue, str(number).encode(), BasicProperties(delivery_mode=2 if number % 2 else 1))
    pump(connection, lambda: not outstanding, "all confirms")
    assert take_all(channel, queue) == [str(number).encode() for number in range(500)]


def test_a_transaction_is_invisible_until_it_commits(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, durable=True)
    other = connect().channel()
    mailbox = Mailbox(other, queue, auto_ack=True)
    channel.tx_select()
    put(channel, queue, [b"a", b"b", b"c"])
    # The select is answered in order, so what it answers for has been handled.
    channel.tx_select()
    barrier(other, queue)
    assert mailbox.bodies == []
    channel.tx_commit()
    mailbox.wait_for(3)
    assert mailbox.bodies == [b"a", b"b", b"c"]


def test_a_rollback_forgets_publishes_and_acks(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    source, target = names.queue("source"), names.queue("target")
    for queue in (source, target):
        channel.queue_declare(queue)
    put(channel, source, [b"job"])
    channel.tx_select()
    job = take(channel, source, auto_ack=False)
    channel.basic_ack(job.method.delivery_tag)
    put(channel, target, [b"result"])
    channel.tx_rollback()
    assert take_all(channel, target) == []
    # The ack is reverted, so the message is still this channel's to ack, and is requeued if the channel does not.
    channel.close()
    again = take(connect().channel(), source)
    assert (again.body, again.method.redelivered) == (b"job", True)


def test_a_commit_moves_a_job_from_queue_to_queue(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    source, target = names.queue("source"), names.queue("target")
    for queue in (source, target):
        channel.queue_declare(queue)
    put(channel, source, [b"job", b"bad job"])
    channel.tx_select()
    jobs = [take(channel, source, auto_ack=False) for _ in range(2)]
    channel.basic_ack(jobs[0].method.delivery_tag)
    channel.basic_reject(jobs[1].method.delivery_tag, requeue=False)
    put(channel, target, [b"result"])
    channel.tx_commit()
    channel.close()
    fresh = connect().channel()
    assert take_all(fresh, target) == [b"result"]
    assert take_all(fresh, source) == []


def test_a_transaction_ends_and_the_next_one_begins_by_itself(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    channel.tx_select()
    for body in (b"1", b"2"):
        put(channel, queue, [body])
        channel.tx_commit()
    put(channel, queue, [b"3"])
    channel.tx_rollback()
    assert take_all(channel, queue) == [b"1", b"2"]


@pytest.mark.parametrize("method", ["tx_commit", "tx_rollback"])
def test_commit_without_select_is_406(channel: BlockingChannel, method: str) -> None:
    with pytest.raises(ChannelClosedByBroker) as caught:
        getattr(channel, method)()
    assert (caught.value.reply_code, caught.value.reply_text) == (
        406,
        "PRECONDITION_FAILED - channel is not transactional",
    )


def test_a_channel_is_transactional_or_confirming_never_both(connection: pika.BlockingConnection) -> None:
    first, second = connection.channel(), connection.channel()
    first.tx_select()
    with pytest.raises(ChannelClosedByBroker) as caught:
        first.confirm_delivery()
    assert caught.value.reply_text == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    second.confirm_delivery()
    with pytest.raises(ChannelClosedByBroker) as caught:
        second.tx_select()
    assert caught.value.reply_text == "PRECONDITION_FAILED - cannot switch from confirm to tx mode"


def test_an_unroutable_mandatory_publish_in_a_transaction_comes_back_upon_commit(channel: BlockingChannel) -> None:
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _c, _m, _p, body: returned.append(body))
    channel.tx_select()
    channel.basic_publish("amq.direct", "nobody", b"lost", mandatory=True)
    channel.tx_commit()
    pump(channel.connection, lambda: returned, "the return")
    assert returned == [b"lost"]
