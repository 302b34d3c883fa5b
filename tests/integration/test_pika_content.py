"""pika: bodies of every size, every property, headers of every type, names in every script: all are returned
unchanged."""

from __future__ import annotations

import datetime
import decimal
import os
from typing import Any

import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from .broker_under_test import Names
from .conftest import Connect
from .pika_mailbox import Mailbox, put, take, take_all

FRAME_BYTES = 131072
FRAME_OVERHEAD_BYTES = 8

SIZES = [
    0,
    1,
    4095,
    FRAME_BYTES - FRAME_OVERHEAD_BYTES - 1,
    FRAME_BYTES - FRAME_OVERHEAD_BYTES,
    FRAME_BYTES - FRAME_OVERHEAD_BYTES + 1,
    3 * FRAME_BYTES,
    5 * 1024 * 1024,
]


@pytest.mark.parametrize("size", SIZES)
def test_a_body_of_any_size(channel: BlockingChannel, names: Names, size: int) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    body = os.urandom(size)
    put(channel, queue, [body, b"after"])
    # Compared before the assert, so that a failure does not print a diff of megabytes.
    same = take(channel, queue).body == body
    assert same, "basic.get-ok brought another body"
    mailbox = Mailbox(channel, queue, auto_ack=True)
    mailbox.wait_for(1)
    put(channel, queue, [body])
    same = mailbox.wait_for(2)[1].body == body
    assert same, "basic.deliver brought another body"


def test_small_frames_cut_a_body_into_many(connect: Connect, names: Names) -> None:
    """Each side uses the frame-max of its own connection: 4096 here, the broker's proposal there."""
    queue = names.queue()
    small, large = connect(frame_max=4096).channel(), connect().channel()
    large.queue_declare(queue)
    body = os.urandom(100_000)
    put(large, queue, [body], headers={"big": "x" * 3000})
    fetched = take(small, queue)
    assert (fetched.body, fetched.properties.headers) == (body, {"big": "x" * 3000})
    put(small, queue, [body])
    assert take(large, queue).body == body


def test_every_property(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    sent = BasicProperties(
        content_type="application/json",
        content_encoding="gzip",
        headers={"k": "v"},
        delivery_mode=2,
        priority=9,
        correlation_id="correlation",
        reply_to="reply.to",
        expiration="60000",
        message_id="message-id",
        timestamp=1_700_000_000,
        type="type",
        user_id="guest",
        app_id="app",
        cluster_id="cluster",
    )
    channel.basic_publish("", queue, b"m", sent)
    assert take(channel, queue).properties == sent


def test_no_property_at_all(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"m", BasicProperties())
    assert take(channel, queue).properties == BasicProperties()


HEADERS: dict[str, Any] = {
    "true": True,
    "false": False,
    "byte": 100,
    "negative byte": -100,
    "short": 30_000,
    "int": 2_000_000_000,
    "negative int": -2_000_000_000,
    "long": 9_000_000_000_000_000_000,
    "negative long": -9_000_000_000_000_000_000,
    "decimal": decimal.Decimal("3.14"),
    "string": "text",
    "unicode": "tекст 文字 🌳",
    "empty": "",
    "bytes": b"\x00\xff\xfe binary",
    "time": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
    "nothing": None,
    "list": [1, "two", None, [3, [True]], {"four": 4}],
    "table": {"a": {"b": {"c": [{"d": "e"}]}}},
    "empty list": [],
    "empty table": {},
}


@pytest.mark.parametrize("key", HEADERS)
def test_every_type_of_header(channel: BlockingChannel, names: Names, key: str) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, [b"m"], headers={key: HEADERS[key]})
    headers = take(channel, queue).properties.headers
    assert headers is not None
    received = headers[key]
    assert received == HEADERS[key]
    # pika gives long integers a subclass of int.
    assert isinstance(received, type(HEADERS[key]))


def test_all_headers_at_once(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue)
    put(channel, queue, [b"m"], headers=HEADERS)
    assert take(channel, queue).properties.headers == HEADERS


NAMES = ["größe", "очередь", "キュー", "🌳", "with space", "a/b?c=d&e", "%2F", "'quoted'", "x" * 200]


@pytest.mark.parametrize("suffix", NAMES)
def test_names_in_any_script(channel: BlockingChannel, names: Names, suffix: str) -> None:
    queue, exchange = names.queue(suffix), names.exchange(suffix)
    channel.exchange_declare(exchange, "direct")
    assert channel.queue_declare(queue).method.queue == queue
    channel.queue_bind(queue, exchange, suffix)
    mailbox = Mailbox(channel, queue, auto_ack=True, consumer_tag=suffix)
    assert mailbox.tag == suffix
    channel.basic_publish(exchange, suffix, suffix.encode())
    [delivery] = mailbox.wait_for(1)
    method = delivery.method
    assert (method.consumer_tag, method.exchange, method.routing_key) == (suffix, exchange, suffix)


def test_a_name_of_255_bytes(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue("y" * (255 - len(names.prefix) - 1))
    assert len(queue) == 255
    channel.queue_declare(queue)
    put(channel, queue, [b"m"])
    assert take_all(channel, queue) == [b"m"]


def test_an_unknown_queue_with_a_strange_name_is_named_in_the_error(channel: BlockingChannel) -> None:
    with pytest.raises(ChannelClosedByBroker) as caught:
        channel.queue_declare("no größe 🌳", passive=True)
    assert caught.value.reply_code == 404
    assert "no größe 🌳" in caught.value.reply_text
