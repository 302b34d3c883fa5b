"""pika: errors surface as the client's exceptions, with RabbitMQ's codes and words, and close no more than needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from .broker_under_test import Names
from .conftest import Connect
from .pika_mailbox import is_empty
from .waiting import wait_until

Act = Callable[[BlockingChannel, str], Any]
MISSING = "it.missing"


def ignore(*_: object) -> None:
    """A consumer that ignores its messages."""


def answered(channel: BlockingChannel, method: object, content: object = None) -> None:
    """Sends a method for which pika has no call, and then a request whose answer follows it."""
    channel._impl._send_method(method, content)
    channel.queue_declare("", exclusive=True)


def publish(channel: BlockingChannel, exchange: str, key: str, **properties: object) -> None:
    channel.basic_publish(exchange, key, b"m", BasicProperties(**properties))
    channel.queue_declare("", exclusive=True)


NO_QUEUE = f"NOT_FOUND - no queue '{MISSING}' in vhost '/'"
NO_EXCHANGE = f"NOT_FOUND - no exchange '{MISSING}' in vhost '/'"

MISSING_THINGS: dict[str, tuple[Act, str]] = {
    "passive queue": (lambda c, q: c.queue_declare(MISSING, passive=True), NO_QUEUE),
    "passive exchange": (lambda c, q: c.exchange_declare(MISSING, passive=True), NO_EXCHANGE),
    "get": (lambda c, q: c.basic_get(MISSING), NO_QUEUE),
    "consume": (lambda c, q: c.basic_consume(MISSING, ignore), NO_QUEUE),
    "purge": (lambda c, q: c.queue_purge(MISSING), NO_QUEUE),
    "bind missing queue": (lambda c, q: c.queue_bind(MISSING, "amq.direct"), NO_QUEUE),
    "bind to missing exchange": (lambda c, q: c.queue_bind(q, MISSING), NO_EXCHANGE),
    "bind missing destination": (lambda c, q: c.exchange_bind(MISSING, "amq.direct"), NO_EXCHANGE),
    "bind missing source": (lambda c, q: c.exchange_bind("amq.direct", MISSING), NO_EXCHANGE),
    "publish": (lambda c, q: publish(c, MISSING, "k"), NO_EXCHANGE),
    "no queue declared yet": (
        lambda c, q: c.queue_bind("", "amq.direct"),
        "NOT_FOUND - no previously declared queue",
    ),
}


@pytest.mark.parametrize("case", MISSING_THINGS)
def test_missing_objects_are_404(connection: pika.BlockingConnection, names: Names, case: str) -> None:
    queue = names.queue()
    connection.channel().queue_declare(queue)
    act, text = MISSING_THINGS[case]
    channel = connection.channel()
    with pytest.raises(ChannelClosedByBroker) as caught:
        act(channel, queue)
    assert (caught.value.reply_code, caught.value.reply_text) == (404, text)
    # Only the channel is closed, and its number may be used at once.
    again = connection.channel(channel.channel_number)
    assert again.queue_declare(queue, passive=True).method.queue == queue


def test_deleting_missing_objects_is_no_error(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    assert channel.queue_delete(MISSING).method.message_count == 0
    channel.exchange_delete(MISSING)
    channel.queue_unbind(queue, "amq.direct", "never bound")
    channel.basic_cancel("no such consumer")


ALREADY: dict[str, tuple[Act, str]] = {
    "durable": (lambda c, q: c.queue_declare(q, durable=True), "'durable'|received 'true' but current is 'false'"),
    "auto-delete": (
        lambda c, q: c.queue_declare(q, auto_delete=True),
        "'auto_delete'|received 'true' but current is 'false'",
    ),
    "another value": (
        lambda c, q: c.queue_declare(f"{q}.args", arguments={"x-max-length": 6}),
        "'x-max-length'|received '6' but current is '5'",
    ),
    "argument left out": (
        lambda c, q: c.queue_declare(f"{q}.args"),
        "'x-max-length'|received none but current is the value '5' of type 'signedint'",
    ),
    "argument added": (
        lambda c, q: c.queue_declare(q, arguments={"x-message-ttl": 5}),
        "'x-message-ttl'|received the value '5' of type 'signedint' but current is none",
    ),
}


@pytest.mark.parametrize("case", ALREADY)
def test_declaring_a_queue_anew_and_differently_is_406(channel: BlockingChannel, names: Names, case: str) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    channel.queue_declare(names.queue("queue.args"), arguments={"x-max-length": 5})
    act, text = ALREADY[case]
    argument, difference = text.split("|")
    with pytest.raises(ChannelClosedByBroker) as caught:
        act(channel, queue)
    which = f"{queue}.args" if "max-length" in argument else queue
    assert caught.value.reply_code == 406
    assert caught.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg {argument} for queue '{which}' in vhost '/': {difference}"
    )


@pytest.mark.parametrize(
    ("argument", "declare", "received", "current"),
    [
        ("type", {"exchange_type": "fanout"}, "'fanout'", "'direct'"),
        ("durable", {"durable": True}, "'true'", "'false'"),
        ("auto_delete", {"auto_delete": True}, "'true'", "'false'"),
        ("internal", {"internal": True}, "'true'", "'false'"),
        (
            "alternate-exchange",
            {"arguments": {"alternate-exchange": "x"}},
            "the value 'x' of type 'longstr'",
            "none",
        ),
    ],
)
def test_declaring_an_exchange_anew_and_differently_is_406(
    channel: BlockingChannel, names: Names, argument: str, declare: dict[str, Any], received: str, current: str
) -> None:
    exchange = names.exchange()
    channel.exchange_declare(exchange, "direct")
    channel.exchange_declare(exchange, "direct")
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.exchange_declare(exchange, **{"exchange_type": "direct", **declare})
    assert caught.value.reply_code == 406
    assert caught.value.reply_text == (
        f"PRECONDITION_FAILED - inequivalent arg '{argument}' for exchange '{exchange}' in vhost '/': "
        f"received {received} but current is {current}"
    )


DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"
PRECONDITIONS: dict[str, tuple[Act, int, str]] = {
    "ack of nothing": (
        lambda c, q: answered(c, pika.spec.Basic.Ack(77)),
        406,
        "PRECONDITION_FAILED - unknown delivery tag 77",
    ),
    "reject of nothing": (
        lambda c, q: answered(c, pika.spec.Basic.Reject(77)),
        406,
        "PRECONDITION_FAILED - unknown delivery tag 77",
    ),
    "nack of nothing": (
        lambda c, q: answered(c, pika.spec.Basic.Nack(77)),
        406,
        "PRECONDITION_FAILED - unknown delivery tag 77",
    ),
    "expiration that is no number": (
        lambda c, q: publish(c, "", q, expiration="soon"),
        406,
        "PRECONDITION_FAILED - invalid expiration 'soon'",
    ),
    "another user's id": (
        lambda c, q: publish(c, "", q, user_id="other"),
        406,
        "PRECONDITION_FAILED - user_id property set to 'other' but authenticated user was 'guest'",
    ),
    "CC that is no list": (
        lambda c, q: publish(c, "", q, headers={"CC": q}),
        406,
        "PRECONDITION_FAILED - invalid message: ",
    ),
    "reply consumer with acks": (
        lambda c, q: c.basic_consume("amq.rabbitmq.reply-to", ignore, auto_ack=False),
        406,
        "PRECONDITION_FAILED - reply consumer cannot acknowledge",
    ),
    "reply-to without a reply consumer": (
        lambda c, q: publish(c, "", q, reply_to="amq.rabbitmq.reply-to"),
        406,
        "PRECONDITION_FAILED - fast reply consumer does not exist",
    ),
    "quorum queue that is not durable": (
        lambda c, q: c.queue_declare(f"{q}.2", arguments={"x-queue-type": "quorum"}),
        406,
        "PRECONDITION_FAILED - invalid property 'non-durable' for queue ",
    ),
    "reserved queue name": (
        lambda c, q: c.queue_declare("amq.mine"),
        403,
        "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    "reserved exchange name": (
        lambda c, q: c.exchange_declare("amq.mine"),
        403,
        "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'",
    ),
    "delete a system exchange": (
        lambda c, q: c.exchange_delete("amq.topic"),
        403,
        "ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed",
    ),
    "declare the default exchange": (lambda c, q: c.exchange_declare("", "direct"), 403, DEFAULT),
    "delete the default exchange": (lambda c, q: c.exchange_delete(""), 403, DEFAULT),
    "bind to the default exchange": (lambda c, q: c.queue_bind(q, "", "k"), 403, DEFAULT),
    "unbind from the default exchange": (lambda c, q: c.queue_unbind(q, "", q), 403, DEFAULT),
}


@pytest.mark.parametrize("case", PRECONDITIONS)
def test_a_failed_precondition_closes_the_channel(connection: pika.BlockingConnection, names: Names, case: str) -> None:
    queue = names.queue()
    channel = connection.channel()
    channel.queue_declare(queue)
    act, code, text = PRECONDITIONS[case]
    with pytest.raises(ChannelClosedByBroker) as caught:
        act(channel, queue)
    assert caught.value.reply_code == code
    assert caught.value.reply_text.startswith(text)
    assert connection.channel().queue_declare(queue, passive=True).method.message_count == 0


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("x-message-ttl", -1),
        ("x-message-ttl", "a"),
        ("x-expires", 0),
        ("x-max-length", -1),
        ("x-max-length-bytes", "1"),
        ("x-max-priority", 256),
        ("x-max-priority", -1),
        ("x-overflow", "explode"),
        ("x-dead-letter-exchange", 5),
        ("x-dead-letter-routing-key", "key without exchange"),
        ("x-queue-type", "no such type"),
        ("x-single-active-consumer", "yes"),
    ],
)
def test_bad_queue_arguments_are_406(channel: BlockingChannel, names: Names, argument: str, value: object) -> None:
    queue = names.queue()
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare(queue, arguments={argument: value})
    assert caught.value.reply_code == 406
    text = caught.value.reply_text
    assert text.startswith("PRECONDITION_FAILED - invalid ")
    assert f"'{argument}'" in text and f"'{queue}'" in text


def test_things_in_use_are_not_deleted(connection: pika.BlockingConnection, names: Names) -> None:
    queue, exchange = names.queue(), names.exchange()
    holder = connection.channel()
    holder.exchange_declare(exchange)
    holder.queue_declare(queue)
    holder.queue_bind(queue, exchange, "k")

    def refused(delete: Callable[[BlockingChannel], object]) -> str:
        with pytest.raises(ChannelClosedByBroker) as caught:
            delete(connection.channel())
        assert caught.value.reply_code == 406
        return str(caught.value.reply_text)

    text = refused(lambda channel: channel.exchange_delete(exchange, if_unused=True))
    assert text == f"PRECONDITION_FAILED - exchange '{exchange}' in vhost '/' in use"
    holder.basic_publish("", queue, b"m")
    wait_until(lambda: not is_empty(holder, queue), "the message")
    text = refused(lambda channel: channel.queue_delete(queue, if_empty=True))
    assert text == f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' not empty"
    holder.queue_purge(queue)
    holder.basic_consume(queue, ignore)
    text = refused(lambda channel: channel.queue_delete(queue, if_unused=True))
    assert text == f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' in use"
    holder.queue_delete(queue, if_empty=True)
    holder.exchange_delete(exchange, if_unused=True)


def test_an_internal_exchange_takes_no_publishes(channel: BlockingChannel, names: Names) -> None:
    exchange = names.exchange()
    channel.exchange_declare(exchange, "fanout", internal=True)
    with pytest.raises(ChannelClosedByBroker) as caught:
        publish(channel, exchange, "")
    text = f"ACCESS_REFUSED - cannot publish to internal exchange '{exchange}' in vhost '/'"
    assert (caught.value.reply_code, caught.value.reply_text) == (403, text)


HARD: dict[str, tuple[Act, int, str]] = {
    "immediate": (
        lambda c, q: answered(
            c, pika.spec.Basic.Publish(exchange="", routing_key=q, immediate=True), (BasicProperties(), b"m")
        ),
        540,
        "NOT_IMPLEMENTED - immediate=true",
    ),
    "prefetch size": (lambda c, q: c.basic_qos(prefetch_size=10), 540, "NOT_IMPLEMENTED - prefetch_size!=0 (10)"),
    "recover without requeue": (lambda c, q: c.basic_recover(requeue=False), 540, "NOT_IMPLEMENTED - requeue=false"),
    "flow off": (lambda c, q: c.flow(False), 540, "NOT_IMPLEMENTED - active=false"),
    "channel opened twice": (
        lambda c, q: answered(c, pika.spec.Channel.Open()),
        504,
        "CHANNEL_ERROR - second 'channel.open' seen",
    ),
}


@pytest.mark.parametrize("case", HARD)
def test_a_violation_of_the_protocol_closes_the_connection(connect: Connect, names: Names, case: str) -> None:
    queue = names.queue()
    channel = connect().channel()
    channel.queue_declare(queue)
    act, code, text = HARD[case]
    with pytest.raises(ConnectionClosedByBroker) as caught:
        act(channel, queue)
    assert (caught.value.reply_code, caught.value.reply_text) == (code, text)


@pytest.mark.only_ours("RabbitMQ 3.10 closes the connection with 503, 4.x the channel with 406")
def test_an_unknown_exchange_type_closes_the_channel(channel: BlockingChannel, names: Names) -> None:
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.exchange_declare(names.exchange(), "no-such-type")
    assert caught.value.reply_code == 406
    assert "unknown exchange type 'no-such-type'" in caught.value.reply_text


def test_a_closed_channel_affects_no_other_channel(connection: pika.BlockingConnection, names: Names) -> None:
    """Other channels of the connection, and their consumers, continue."""
    queue = names.queue()
    good, bad = connection.channel(), connection.channel()
    good.queue_declare(queue)
    bodies: list[bytes] = []
    good.basic_consume(queue, lambda _c, _m, _p, body: bodies.append(body), auto_ack=True)
    with pytest.raises(ChannelClosedByBroker):
        bad.queue_declare(MISSING, passive=True)
    good.basic_publish("", queue, b"still here")
    while not bodies:
        connection.process_data_events(time_limit=0.05)
    assert bodies == [b"still here"]
