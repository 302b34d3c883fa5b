"""Consumers: prefetch, order, requeueing, priorities, single active consumers, exclusivity, cancellation."""

from __future__ import annotations

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConsumerCancelled, DuplicateConsumerTag

from .broker_under_test import Names
from .conftest import Connect
from .pika_mailbox import Mailbox, put, take, take_all
from .waiting import barrier, pump

FIVE = [b"0", b"1", b"2", b"3", b"4"]


def test_prefetch_is_counted_per_consumer(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, [str(n).encode() for n in range(10)])
    channel.basic_qos(prefetch_count=3)
    first, second = Mailbox(channel, queue), Mailbox(channel, queue)
    first.wait_for(3)
    second.wait_for(3)
    barrier(channel, queue)
    assert (len(first.bodies), len(second.bodies)) == (3, 3)
    channel.basic_ack(first.deliveries[0].tag)
    first.wait_for(4)
    barrier(channel, queue)
    assert (len(first.bodies), len(second.bodies)) == (4, 3)


def test_global_prefetch_is_shared_by_the_channel(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    channel.basic_qos(prefetch_count=3, global_qos=True)
    first, second = Mailbox(channel, queue), Mailbox(channel, queue)
    pump(channel.connection, lambda: len(first.deliveries) + len(second.deliveries) == 3, "three deliveries")
    barrier(channel, queue)
    assert len(first.deliveries) + len(second.deliveries) == 3
    channel.basic_ack((first.deliveries + second.deliveries)[0].tag)
    pump(channel.connection, lambda: len(first.deliveries) + len(second.deliveries) == 4, "the fourth delivery")


def test_global_prefetch_may_be_raised_for_consumers_at_work(channel: BlockingChannel, names: Names) -> None:
    """Celery does so for each task that it holds for later."""
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    channel.basic_qos(prefetch_count=1, global_qos=True)
    mailbox = Mailbox(channel, queue)
    for count in (1, 2, 3):
        channel.basic_qos(prefetch_count=count, global_qos=True)
        mailbox.wait_for(count)
        barrier(channel, queue)
        assert len(mailbox.bodies) == count
    channel.basic_qos(prefetch_count=0, global_qos=True)
    mailbox.wait_for(5)


def test_a_later_qos_concerns_later_consumers_only(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    channel.basic_qos(prefetch_count=1)
    first = Mailbox(channel, queue)
    channel.basic_qos(prefetch_count=2)
    second = Mailbox(channel, queue)
    put(channel, queue, FIVE)
    pump(channel.connection, lambda: len(first.bodies) + len(second.bodies) == 3, "three deliveries")
    barrier(channel, queue)
    assert (len(first.bodies), len(second.bodies)) == (1, 2)


def test_prefetch_zero_is_no_limit_and_auto_ack_ignores_it(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, [b"m"] * 300)
    channel.basic_qos(prefetch_count=1)
    mailbox = Mailbox(channel, queue, auto_ack=True)
    mailbox.wait_for(300)
    channel.basic_cancel(mailbox.tag)
    put(channel, queue, [b"m"] * 300)
    channel.basic_qos(prefetch_count=0)
    Mailbox(channel, queue).wait_for(300)


def test_ack_multiple_acks_all_up_to_the_tag(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(5)
    channel.basic_ack(mailbox.deliveries[2].tag, multiple=True)
    channel.close()
    assert take_all(connect().channel(), queue) == [b"3", b"4"]


def test_ack_zero_multiple_acks_everything(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(5)
    channel.basic_ack(0, multiple=True)
    put(channel, queue, [b"after"])
    mailbox.wait_for(6)
    channel.close()
    fresh = connect().channel()
    assert take(fresh, queue).body == b"after"
    assert take_all(fresh, queue) == []


def test_nacked_messages_go_back_to_their_place(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    fetched = [take(channel, queue, auto_ack=False) for _ in range(3)]
    channel.basic_nack(fetched[1].method.delivery_tag, requeue=True)
    again = take(channel, queue, auto_ack=False)
    assert (again.body, again.method.redelivered) == (b"1", True)
    channel.basic_nack(again.method.delivery_tag, multiple=True, requeue=True)
    assert take_all(channel, queue) == FIVE


def test_nack_without_requeue_drops(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, [*FIVE, b"kept"])
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(6)
    channel.basic_nack(mailbox.deliveries[3].tag, multiple=True, requeue=False)
    channel.basic_reject(mailbox.deliveries[4].tag, requeue=False)
    channel.close()
    # Only messages that were not settled are redelivered.
    fresh = connect().channel()
    assert take(fresh, queue).body == b"kept"
    assert take_all(fresh, queue) == []


def test_a_closed_channel_gives_back_in_order(connect: Connect, names: Names) -> None:
    queue = names.queue()
    keeper = connect().channel()
    keeper.queue_declare(queue)
    put(keeper, queue, FIVE)
    channel = connect().channel()
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(5)
    channel.basic_ack(mailbox.deliveries[1].tag)
    channel.close()
    fetched = [take(keeper, queue) for _ in range(4)]
    assert [f.body for f in fetched] == [b"0", b"2", b"3", b"4"]
    assert all(f.method.redelivered for f in fetched)


def test_recover_redelivers(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(5)
    channel.basic_recover(requeue=True)
    again = mailbox.wait_for(10)[5:]
    assert [d.body for d in again] == FIVE
    assert all(d.method.redelivered for d in again)


def test_basic_get_returns_the_number_of_messages_left(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    assert channel.basic_get(queue) == (None, None, None)
    put(channel, queue, FIVE)
    fetched = take(channel, queue)
    assert (fetched.method.message_count, fetched.method.routing_key, fetched.method.redelivered) == (4, queue, False)


def test_declare_ok_counts_messages_and_consumers(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    channel.confirm_delivery()
    put(channel, queue, FIVE)
    declared = channel.queue_declare(queue).method
    assert (declared.message_count, declared.consumer_count) == (5, 0)
    other = connect().channel()
    other.basic_qos(prefetch_count=2)
    Mailbox(other, queue).wait_for(2)
    declared = channel.queue_declare(queue, passive=True).method
    assert (declared.message_count, declared.consumer_count) == (3, 1)
    assert channel.queue_purge(queue).method.message_count == 3
    assert channel.queue_delete(queue).method.message_count == 0


def test_deleting_a_queue_cancels_its_consumers(channel: BlockingChannel, connect: Connect, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    watcher = connect().channel()
    mailbox = Mailbox(watcher, queue)
    cancelled: list[str] = []
    watcher.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    channel.queue_delete(queue)
    pump(watcher.connection, lambda: cancelled, "basic.cancel")
    assert cancelled == [mailbox.tag]
    # The channel stays open.
    watcher.queue_declare(queue)


def test_a_blocking_generator_ends_when_its_queue_is_deleted(
    channel: BlockingChannel, connect: Connect, names: Names
) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, [b"last"])
    reader = connect().channel()
    consumer = reader.consume(queue, auto_ack=True, inactivity_timeout=10)
    assert next(consumer)[2] == b"last"
    channel.queue_delete(queue)
    # pika's generator ends or raises, depending on the version.
    with pytest.raises((StopIteration, ConsumerCancelled)):
        next(consumer)


def test_a_cancelled_consumer_keeps_its_unacked_messages(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, FIVE)
    channel.basic_qos(prefetch_count=2)
    mailbox = Mailbox(channel, queue)
    mailbox.wait_for(2)
    channel.basic_cancel(mailbox.tag)
    assert channel.queue_declare(queue, passive=True).method.message_count == 3
    channel.basic_ack(mailbox.deliveries[1].tag, multiple=True)
    assert take_all(channel, queue) == [b"2", b"3", b"4"]


def test_an_auto_delete_queue_goes_with_its_last_consumer(connection: pika.BlockingConnection, names: Names) -> None:
    queue = names.queue()
    channel = connection.channel()
    channel.queue_declare(queue, auto_delete=True)
    put(channel, queue, [b"m"])
    first, second = Mailbox(channel, queue), Mailbox(channel, queue)
    channel.basic_cancel(first.tag)
    assert channel.queue_declare(queue, passive=True).method.consumer_count == 1
    channel.basic_cancel(second.tag)
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(queue, passive=True)
    assert caught.value.reply_code == 404


def test_consumers_of_higher_priority_are_served_first(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    channel.basic_qos(prefetch_count=2)
    low = Mailbox(channel, queue, arguments={"x-priority": -5})
    middle = Mailbox(channel, queue)
    high = Mailbox(channel, queue, arguments={"x-priority": 10})
    put(channel, queue, FIVE)
    pump(channel.connection, lambda: len(low.bodies) == 1, "the rest")
    assert (high.bodies, middle.bodies, low.bodies) == ([b"0", b"1"], [b"2", b"3"], [b"4"])


def test_an_exclusive_consumer_is_alone(connection: pika.BlockingConnection, names: Names) -> None:
    queue = names.queue()
    channel = connection.channel()
    channel.queue_declare(queue)
    mailbox = Mailbox(channel, queue, exclusive=True)
    refusal = f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"
    for exclusive in (False, True):
        with pytest.raises(ChannelClosedByBroker) as caught:
            Mailbox(connection.channel(), queue, exclusive=exclusive)
        assert (caught.value.reply_code, caught.value.reply_text) == (403, refusal)
    channel.basic_cancel(mailbox.tag)
    Mailbox(connection.channel(), queue)
    with pytest.raises(ChannelClosedByBroker) as caught:
        Mailbox(channel, queue, exclusive=True)
    assert caught.value.reply_text == refusal


def test_a_single_active_consumer_hands_over(connect: Connect, names: Names) -> None:
    queue = names.queue()
    first, second = connect().channel(), connect().channel()
    first.queue_declare(queue, arguments={"x-single-active-consumer": True})
    active, waiting = Mailbox(first, queue), Mailbox(second, queue)
    put(first, queue, FIVE[:3])
    active.wait_for(3)
    first.basic_ack(active.deliveries[0].tag)
    barrier(second, queue)
    assert waiting.bodies == []
    first.connection.close()
    waiting.wait_for(2)
    assert waiting.bodies == [b"1", b"2"]
    assert all(d.method.redelivered for d in waiting.deliveries)
    put(second, queue, [b"new"])
    assert waiting.wait_for(3)[2].body == b"new"


def test_a_consumer_tag_is_made_up_if_none_is_given(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    tags: list[str] = []
    impl = channel._impl
    impl._rpc(
        pika.spec.Basic.Consume(queue=queue, consumer_tag=""),
        lambda frame: tags.append(frame.method.consumer_tag),
        [pika.spec.Basic.ConsumeOk],
    )
    pump(channel.connection, lambda: tags, "basic.consume-ok")
    assert tags[0].startswith("amq.ctag-")


def test_a_consumer_tag_is_unique_within_its_channel(connection: pika.BlockingConnection, names: Names) -> None:
    queue = names.queue()
    first, second = connection.channel(), connection.channel()
    first.queue_declare(queue)
    Mailbox(first, queue, consumer_tag="same")
    Mailbox(second, queue, consumer_tag="same")
    with pytest.raises(DuplicateConsumerTag):
        Mailbox(first, queue, consumer_tag="same")
