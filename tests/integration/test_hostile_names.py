"""Hostile names, through AMQP and on to HTTP and the log: they are returned unchanged.

The names that concern only HTTP and the command line are tested there.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.support.channel import Channel
from tests.support.client import Connection
from tests.support.fields import table

from .configured_broker import ConfiguredBroker, quick_hash, running

pytestmark = pytest.mark.only_ours("its users and its log are looked at")

NAMES = {
    "unicode": "größe-очередь-キュー-🌳",
    "NUL": "nul\0nul",
    "nothing but NUL": "\0",
    "slashes": "/a//b/../c",
    "escapes": "%2F%00%%",
    "a query": "?a=b&c#d;e",
    "a terminal's": "\x1b[31m\x1b]0;owned\x07\x7f",
    "right to left": "\u202eabc",
    "line ends of others": "a\u2028b\u0085c",
    "quotes": "'\"`<script>${x}\\",
    "longest": "x" * 255,
    "longest, in two octets each": "é" * 127 + "x",
    "like a pattern": "#.*.[a-z]+(",
    "a space": " ",
}
OCTETS = {"not valid UTF-8": b"\xff\xfe\x80", "half a character": b"abc\xc3", "a surrogate": b"\xed\xa0\x80"}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("target"), node={"http": "127.0.0.1:0"})) as broker:
        yield broker


@pytest.fixture
def channel(target: ConfiguredBroker) -> Iterator[Channel]:
    connection = target.open()
    yield connection.channel()
    connection.close()


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_queues_routing_keys_and_tags(channel: Channel, name: str) -> None:
    assert channel.declare_queue(name) == name
    assert channel.consume(name, name) == name
    channel.publish(b"m", name, correlation_id=name)
    delivery = channel.delivery()
    assert delivery.consumer_tag == delivery.routing_key == delivery.properties["correlation_id"] == name
    channel.rpc("queue.delete", queue=name)
    channel.expect("basic.cancel")
    channel.send("queue.declare", queue=name, passive=True)
    closed = channel.expect("channel.close")
    assert closed.reply_code == 404
    assert closed.reply_text.startswith(f"NOT_FOUND - no queue '{name[:50]}")
    channel.send("channel.close-ok")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_exchanges_and_bindings(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    for kind in ("direct", "topic", "headers", "fanout"):
        channel.declare_exchange(name, kind)
        channel.bind(queue, name, name, key=name)
        channel.publish(b"m", name, name, headers={"key": name})
        got = channel.get(queue)
        assert got is not None, kind
        assert got.exchange == got.routing_key == got.properties["headers"]["key"] == name
        channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key=name, arguments={"key": name})
        channel.publish(b"m", name, name, headers={"key": name})
        assert channel.get(queue) is None
        channel.rpc("exchange.delete", exchange=name)


@pytest.mark.parametrize("octets", OCTETS.values(), ids=OCTETS.keys())
@pytest.mark.parametrize(
    ("method", "argument"),
    [("queue.declare", "queue"), ("exchange.declare", "exchange"), ("basic.consume", "consumer_tag")],
)
def test_octets_that_are_no_text_are_no_name(
    target: ConfiguredBroker, method: str, argument: str, octets: bytes
) -> None:
    """As in RabbitMQ. The contents of a message may be any octets."""
    connection = target.open()
    channel = connection.channel()
    queue = channel.declare_queue()
    channel.publish(b"m", queue, message_id=octets)
    assert channel.get(queue) is not None
    channel.send(method, **{argument: octets})
    connection.expect_close(501, "FRAME_ERROR - Malformed UTF-8 in shortstr")


def test_line_ends_are_taken_out_of_queues_names(channel: Channel) -> None:
    """As RabbitMQ does."""
    assert channel.declare_queue("a\r\nb\nc") == "abc"


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_users_and_vhosts(target: ConfiguredBroker, name: str) -> None:
    """They are created over HTTP, used over AMQP, read over HTTP again, with a password of the same kind."""
    password = f"{name}:{name}"
    target.define(
        vhosts=[{"name": name}],
        users=[{"name": name, **quick_hash(password), "tags": ""}],
        permissions=[{"user": name, "vhost": name, "configure": ".*", "write": ".*", "read": ".*"}],
    )
    connection = Connection(target.address(name, password, name))
    # PLAIN ends a name at a NUL; AMQPLAIN can encode every name.
    connection.log_in(mechanism="AMQPLAIN", response=table({"LOGIN": name, "PASSWORD": password})[4:])
    connection.tune_and_open()
    channel = connection.channel()
    queue = channel.declare_queue(name)
    channel.publish(b"m", queue, user_id=name)
    got = channel.get(queue)
    assert got is not None and got.properties["user_id"] == name
    with target.api() as api:
        (row,) = (row for row in api.get("connections").json() if row["user"] == name)
        assert row["vhost"] == name
        assert api.get(f"queues/{escaped(name)}/{escaped(name)}").json()["name"] == name
    connection.close()
    with target.api() as api:
        assert api.delete(f"users/{escaped(name)}").status_code == 204
        assert api.delete(f"vhosts/{escaped(name)}").status_code == 204


def escaped(name: str) -> str:
    return quote(name, safe="")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_hostile_name_is_one_line_in_the_log(target: ConfiguredBroker, name: str) -> None:
    """The log is safe to read in a terminal, and no client can forge a line."""
    hostile = f"{name}\n2026-01-01 00:00:00,000 INFO all is well".encode()[:255].decode("utf-8", "ignore")
    mark = target.mark()
    stranger = Connection(target.address("guest", "guest"))
    stranger.log_in()
    stranger.send("connection.tune-ok", channel_max=10, frame_max=131072, heartbeat=0)
    stranger.send("connection.open", virtual_host=hostile)
    assert stranger.expect("connection.close").reply_code == 530
    stranger.send("connection.close-ok")
    stranger.drop()
    (line,) = target.lines("", mark)
    assert "NOT_ALLOWED - vhost" in line and line.isprintable()


def test_a_hostile_user_is_one_line_in_the_log(target: ConfiguredBroker) -> None:
    mark = target.mark()
    connection = Connection(target.address("guest\n2026-01-01 00:00:00,000 INFO \x1b[2Jall is well", "wrong"))
    with pytest.raises(AssertionError, match="403"):
        connection.log_in()
    connection.drop()
    (line,) = target.lines("", mark)
    assert "failed" in line and line.isprintable()
