"""Clients of brokers that are not the root: to them the cluster is one broker."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.integration.waiting import pump

from .cluster import Cluster

PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture
def places(proxies: Cluster) -> Iterator[list[BlockingChannel]]:
    """A channel on each broker, the root's first."""
    root = proxies.root
    brokers = [root, *(broker for broker in proxies if broker is not root)]
    connections = [pika.BlockingConnection(broker.parameters()) for broker in brokers]
    yield [connection.channel() for connection in connections]
    for connection in connections:
        if connection.is_open:
            connection.close()


def get(channel: BlockingChannel, queue: str) -> bytes | None:
    method, _, body = channel.basic_get(queue, auto_ack=True)
    return None if method is None else body


@pytest.mark.proves("R12", "R32")
def test_a_queue_of_one_broker_is_a_queue_of_all(places: list[BlockingChannel]) -> None:
    _, one, other = places
    one.queue_declare("shared", durable=True)
    other.queue_declare("shared", durable=True, passive=True)
    for place, channel in enumerate(places):
        channel.confirm_delivery()
        channel.basic_publish("", "shared", f"from {place}".encode(), PERSISTENT, mandatory=True)
    assert [get(channel, "shared") for channel in reversed(places)] == [b"from 0", b"from 1", b"from 2"]
    assert get(other, "shared") is None
    other.basic_publish("", "shared", b"x", PERSISTENT)
    assert other.queue_purge("shared").method.message_count == 1
    assert one.queue_delete("shared").method.message_count == 0
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        other.queue_declare("shared", passive=True)
    assert closed.value.reply_code == 404


@pytest.mark.proves("R28")
def test_a_consumer_anywhere_takes_part(places: list[BlockingChannel]) -> None:
    root, one, other = places
    root.queue_declare("work", durable=True)
    taken: dict[str, list[bytes]] = {"one": [], "other": []}
    redelivered: list[bytes] = []

    def take(name: str, channel: BlockingChannel) -> None:
        def on_message(_: object, method: pika.spec.Basic.Deliver, __: object, body: bytes) -> None:
            taken[name].append(body)
            if body == b"3" and not method.redelivered:
                channel.basic_nack(method.delivery_tag, requeue=True)
            else:
                redelivered.extend([body] if method.redelivered else [])
                channel.basic_ack(method.delivery_tag)

        channel.basic_qos(prefetch_count=2)
        channel.basic_consume("work", on_message, consumer_tag=f"tag of {name}")

    take("one", one)
    take("other", other)
    for number in range(20):
        root.basic_publish("", "work", str(number).encode(), PERSISTENT)

    def done() -> bool:
        for channel in (one, other):
            channel.connection.process_data_events(time_limit=0.01)
        return len(taken["one"]) + len(taken["other"]) >= 21

    pump(root.connection, done, "all messages to be consumed")
    assert sorted({*taken["one"], *taken["other"]}, key=int) == [str(number).encode() for number in range(20)]
    assert redelivered == [b"3"]
    assert taken["one"] and taken["other"]
    one.basic_cancel("tag of one")
    other.basic_cancel("tag of other")
    assert root.queue_delete("work").method.message_count == 0


@pytest.mark.proves("R24")
def test_a_transaction_through_another_broker_is_one(places: list[BlockingChannel]) -> None:
    root, one, _ = places
    root.queue_declare("ledger", durable=True)
    root.basic_publish("", "ledger", b"debit", PERSISTENT)
    one.tx_select()
    method, _, body = one.basic_get("ledger")
    assert method is not None and body == b"debit"
    one.basic_publish("", "ledger", b"credit", PERSISTENT)
    one.basic_ack(method.delivery_tag)
    assert get(root, "ledger") is None
    one.tx_commit()
    assert get(root, "ledger") == b"credit"
    one.basic_publish("", "ledger", b"never", PERSISTENT)
    one.tx_rollback()
    assert get(root, "ledger") is None
    root.queue_delete("ledger")


@pytest.mark.proves("R27", "R30", "R31")
def test_messages_published_anywhere_reach_private_queues_everywhere_once(places: list[BlockingChannel]) -> None:
    places[1].exchange_declare("news", "topic", durable=True)
    heard: list[list[bytes]] = []
    for channel in places:
        for _ in range(2):
            queue = channel.queue_declare("", exclusive=True).method.queue
            channel.queue_bind(queue, "news", "weather.#")
            mine: list[bytes] = []
            heard.append(mine)
            channel.basic_consume(queue, lambda _c, _m, _p, body, mine=mine: mine.append(body), auto_ack=True)
    places[2].queue_declare("archive", durable=True)
    places[2].queue_bind("archive", "news", "#")
    for place, channel in enumerate(places):
        channel.confirm_delivery()
        channel.basic_publish("news", "weather.today", f"rain at {place}".encode(), mandatory=True)
        channel.basic_publish("news", "sports", b"0:0", mandatory=True)
    expected = [f"rain at {place}".encode() for place in range(len(places))]

    def done() -> bool:
        for channel in places[1:]:
            channel.connection.process_data_events(time_limit=0.01)
        return all(len(mine) >= len(expected) for mine in heard)

    pump(places[0].connection, done, "the news everywhere")
    for channel in places:
        channel.connection.process_data_events(time_limit=0.05)
    assert all(sorted(mine) == expected for mine in heard)
    assert places[1].queue_purge("archive").method.message_count == 2 * len(places)


@pytest.mark.proves("R27")
def test_the_name_of_a_private_queue_is_taken_everywhere(places: list[BlockingChannel]) -> None:
    _, one, other = places
    one.queue_declare("mine", exclusive=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        other.queue_declare("mine", exclusive=True)
    assert closed.value.reply_code == 405
    again = other.connection.channel()
    again.confirm_delivery()
    again.basic_publish("", "mine", b"for you", mandatory=True)
    pump(one.connection, lambda: get(one, "mine") == b"for you", "the message in the private queue")
    one.connection.close()
    again.queue_declare("mine", exclusive=True)


@pytest.mark.proves("R12")
def test_errors_have_the_same_codes_and_texts_as_those_of_the_root(places: list[BlockingChannel]) -> None:
    errors = []
    for channel in places:
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            channel.basic_consume("nowhere", lambda *_: None)
        errors.append((closed.value.reply_code, closed.value.reply_text))
    assert errors[0][0] == 404
    assert len(set(errors)) == 1
    returned: list[int] = []
    for place in places:
        channel = place.connection.channel()
        channel.confirm_delivery()
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("", "nowhere", b"", mandatory=True)
        returned.append(1)
    assert len(returned) == len(places)
