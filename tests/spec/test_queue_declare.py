"""queue.declare: flags, names, passive, exclusive, equivalence."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Channel
from tests.support.fields import Typed

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{}' in vhost '/'. It could be originally "
    "declared on another connection or the exclusive property value does not match that of the original declaration."
)


def test_declare_ok_names_the_queue_and_counts(channel: Channel, name: str) -> None:
    found = channel.rpc("queue.declare", queue=name, exclusive=True)
    assert (found.queue, found.message_count, found.consumer_count) == (name, 0, 0)
    for _ in range(3):
        channel.publish("m", name)
    other = channel.connection.channel()
    other.consume(name)
    other.bodies(3)
    channel.publish("m", name)
    other.delivery()
    found = channel.rpc("queue.declare", queue=name, exclusive=True)
    assert (found.message_count, found.consumer_count) == (0, 1), "unacked messages are not ready"
    other.rpc("channel.close", reply_code=200)
    found = channel.rpc("queue.declare", queue=name, exclusive=True)
    assert (found.message_count, found.consumer_count) == (4, 0)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("auto_delete", [False, True])
def test_all_flags(channel: Channel, name: str, durable: bool, exclusive: bool, auto_delete: bool) -> None:
    flags = {"durable": durable, "exclusive": exclusive, "auto_delete": auto_delete}
    for _ in range(2):
        assert channel.rpc("queue.declare", queue=name, **flags).queue == name
    channel.publish("m", name)
    assert channel.drain(name) == [b"m"]


def test_the_broker_makes_up_names(channel: Channel) -> None:
    names = {channel.declare_queue("") for _ in range(20)}
    assert len(names) == 20
    assert all(found.startswith("amq.gen-") for found in names)


def test_the_last_name_stands_for_an_empty_one(channel: Channel) -> None:
    queue = channel.declare_queue("")
    channel.rpc("queue.bind", queue="", exchange="amq.fanout")
    channel.publish("m", queue)
    channel.send("basic.get", queue="", no_ack=True)
    assert channel.expect("basic.get-ok").body == b"m"
    assert channel.rpc("queue.purge", queue="").message_count == 0
    channel.rpc("basic.consume", queue="", no_ack=True)
    channel.rpc("queue.unbind", queue="", exchange="amq.fanout")
    channel.rpc("queue.delete", queue="")


@pytest.mark.parametrize("method", ["queue.bind", "queue.purge", "queue.delete", "basic.consume", "basic.get"])
def test_without_a_last_name_an_empty_one_means_nothing(channel: Channel, method: str) -> None:
    more = {"exchange": "amq.direct"} if method == "queue.bind" else {}
    channel.refused(404, "NOT_FOUND - no previously declared queue", method, queue="", **more)


def test_no_wait(channel: Channel, name: str) -> None:
    channel.send("queue.declare", queue=name, exclusive=True, no_wait=True)
    channel.expect_nothing()
    assert channel.counts(name) == (0, 0)


def test_a_queue_that_was_declared_without_waiting_is_the_last_one(channel: Channel, name: str) -> None:
    channel.send("queue.declare", queue=name, exclusive=True, no_wait=True)
    channel.publish("m", name)
    channel.send("basic.get", queue="", no_ack=True)
    assert channel.expect("basic.get-ok").routing_key == name


@pytest.mark.parametrize("no_wait", [False, True])
def test_a_passive_declare_of_a_missing_queue_is_refused(channel: Channel, name: str, no_wait: bool) -> None:
    text = f"NOT_FOUND - no queue '{name}' in vhost '/'"
    channel.refused(404, text, "queue.declare", queue=name, passive=True, no_wait=no_wait)


def test_a_passive_no_wait_declare_of_an_existing_queue_is_not_answered(channel: Channel, name: str) -> None:
    channel.declare_queue(name)
    channel.send("queue.declare", queue=name, passive=True, no_wait=True)
    channel.expect_nothing()


def test_passive_looks_only_at_the_name(channel: Channel, name: str) -> None:
    channel.declare_queue(name, exclusive=False, durable=True)
    found = channel.rpc("queue.declare", queue=name, passive=True, auto_delete=True, arguments={"x-max-length": 5})
    assert found.queue == name


def test_names_that_begin_with_amq_are_reserved(channel: Channel) -> None:
    text = "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
    channel.refused(403, text, "queue.declare", queue="amq.mine")


def test_a_name_that_the_broker_made_may_be_declared_again(channel: Channel) -> None:
    queue = channel.declare_queue("")
    assert channel.counts(queue) == (0, 0)
    text = f"ACCESS_REFUSED - queue name '{queue}' contains reserved prefix 'amq.*'"
    channel.rpc("queue.delete", queue=queue)
    channel.refused(403, text, "queue.declare", queue=queue, exclusive=True)


@pytest.mark.parametrize("queue", ["q" * 255, "ä ö ü 漢字", "with 'quotes' and / slash", "amq"])
def test_unusual_names(channel: Channel, queue: str) -> None:
    assert channel.declare_queue(queue) == queue
    channel.publish("m", queue)
    assert channel.drain(queue) == [b"m"]


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("queue.declare", {}),
        ("queue.declare", {"passive": True}),
        ("queue.declare", {"exclusive": True}),
        ("queue.bind", {"exchange": "amq.direct"}),
        ("queue.purge", {}),
        ("queue.delete", {}),
        ("basic.get", {}),
        ("basic.consume", {}),
    ],
)
def test_an_exclusive_queue_is_locked_for_other_connections(
    channel: Channel, other: Channel, name: str, method: str, more: dict[str, Any]
) -> None:
    channel.declare_queue(name)
    other.refused(405, LOCKED.format(name), method, queue=name, **more)
    assert channel.counts(name) == (0, 0)


def test_an_exclusive_queue_is_open_to_all_channels_of_its_connection(channel: Channel, name: str) -> None:
    channel.declare_queue(name)
    sibling = channel.connection.channel()
    assert sibling.declare_queue(name) == name
    sibling.publish("m", name)
    assert sibling.drain(name) == [b"m"]


def test_any_connection_may_publish_to_an_exclusive_queue(channel: Channel, other: Channel, name: str) -> None:
    channel.declare_queue(name)
    channel.consume(name, no_ack=True)
    other.publish("m", name)
    assert channel.delivery().body == b"m"


def test_an_exclusive_queue_goes_with_its_connection(channel: Channel, other: Channel, name: str) -> None:
    other.declare_queue(name, durable=True)
    other.connection.close()
    channel.refused(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", "queue.declare", queue=name, passive=True)


def test_exclusive_does_not_go_with_its_channel(channel: Channel, name: str) -> None:
    sibling = channel.connection.channel()
    sibling.declare_queue(name)
    sibling.rpc("channel.close", reply_code=200)
    assert channel.counts(name) == (0, 0)


@pytest.mark.parametrize("first", [False, True])
def test_exclusive_has_to_be_the_same_in_each_declare(channel: Channel, name: str, first: bool) -> None:
    channel.rpc("queue.declare", queue=name, exclusive=first)
    channel.refused(405, LOCKED.format(name), "queue.declare", queue=name, exclusive=not first)


@pytest.mark.parametrize("flag", ["durable", "auto_delete"])
@pytest.mark.parametrize("first", [False, True])
def test_a_flag_that_differs(channel: Channel, name: str, flag: str, first: bool) -> None:
    channel.rpc("queue.declare", queue=name, **{flag: first})
    text = f"PRECONDITION_FAILED - inequivalent arg '{flag}' for queue '{name}' in vhost '/': "
    text += f"received '{str(not first).lower()}' but current is '{str(first).lower()}'"
    channel.refused(406, text, "queue.declare", queue=name, **{flag: not first})


TTL = {"x-message-ttl": 1000}
DIFFERENCES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, TTL, "x-message-ttl", "received the value '1000' of type 'signedint' but current is none"),
    (TTL, {}, "x-message-ttl", "received none but current is the value '1000' of type 'signedint'"),
    (TTL, {"x-message-ttl": 2000}, "x-message-ttl", "received '2000' but current is '1000'"),
    ({"x-max-length": 1}, {"x-max-length": 2}, "x-max-length", "received '2' but current is '1'"),
    ({"x-max-length-bytes": 1}, {"x-max-length-bytes": 2}, "x-max-length-bytes", "received '2' but current is '1'"),
    ({"x-expires": 100_000}, {"x-expires": 100_001}, "x-expires", "received '100001' but current is '100000'"),
    ({"x-max-priority": 3}, {"x-max-priority": 4}, "x-max-priority", "received '4' but current is '3'"),
    (
        {"x-dead-letter-exchange": "a"},
        {"x-dead-letter-exchange": "b"},
        "x-dead-letter-exchange",
        "received 'b' but current is 'a'",
    ),
    (
        {"x-dead-letter-exchange": "a"},
        {"x-dead-letter-exchange": "a", "x-dead-letter-routing-key": "k"},
        "x-dead-letter-routing-key",
        "received the value 'k' of type 'longstr' but current is none",
    ),
    (
        {},
        {"x-single-active-consumer": True},
        "x-single-active-consumer",
        "received the value 'true' of type 'bool' but current is none",
    ),
    (
        {"x-single-active-consumer": True},
        {"x-single-active-consumer": False},
        "x-single-active-consumer",
        "received 'false' but current is 'true'",
    ),
    (
        {"x-overflow": "drop-head"},
        {"x-overflow": "reject-publish"},
        "x-overflow",
        "received 'reject-publish' but current is 'drop-head'",
    ),
    (
        {},
        {"x-queue-mode": "lazy"},
        "x-queue-mode",
        "received the value 'lazy' of type 'longstr' but current is none",
    ),
]


@pytest.mark.parametrize(("first", "then", "argument", "text"), DIFFERENCES)
def test_arguments_that_differ(
    channel: Channel, name: str, first: dict[str, Any], then: dict[str, Any], argument: str, text: str
) -> None:
    channel.declare_queue(name, arguments=first)
    expected = f"PRECONDITION_FAILED - inequivalent arg '{argument}' for queue '{name}' in vhost '/': {text}"
    channel.refused(406, expected, "queue.declare", queue=name, exclusive=True, arguments=then)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (TTL, {"x-message-ttl": Typed("l", 1000)}),
        ({"x-message-ttl": Typed("b", 100)}, {"x-message-ttl": Typed("I", 100)}),
        ({"x-max-length": Typed("s", 10)}, {"x-max-length": Typed("i", 10)}),
        ({"x-made-up": "a"}, {"x-made-up": "b"}),
        ({}, {"x-made-up": [1, {"deep": None}]}),
        ({}, {"x-queue-type": "classic"}),
    ],
)
def test_arguments_that_are_equal_enough(
    channel: Channel, name: str, first: dict[str, Any], then: dict[str, Any]
) -> None:
    channel.declare_queue(name, arguments=first)
    channel.declare_queue(name, arguments=then)
