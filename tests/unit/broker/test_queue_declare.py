"""queue.declare: names, owners, and when a second declare means the same queue."""

from typing import Any

import pytest

from pandomq import methods
from pandomq.fieldtable import Int32
from tests.unit.broker.conversation import World

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally "
    "declared on another connection or the exclusive property value does not match that of the original declaration."
)


def test_the_broker_makes_a_name_if_there_is_none() -> None:
    peer = World().peer()
    first, second = peer.declare("").queue, peer.declare("").queue
    assert first != second
    for name in (first, second):
        assert name.startswith("amq.gen-")
        assert len(name) == len("amq.gen-JzTY20BRgKO-HjmUJj0wLg")


def test_names_of_the_broker_are_reserved() -> None:
    peer = World().peer()
    close = peer.refused(methods.QueueDeclare("amq.mine"))
    assert close.reply_code == 403
    assert close.reply_text == "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"
    generated = peer.declare("").queue
    assert peer.refused(methods.QueueDeclare(generated)).reply_code == 403
    assert peer.declare(generated, passive=True).queue == generated


def test_a_passive_declare_creates_nothing() -> None:
    peer = World().peer()
    close = peer.refused(methods.QueueDeclare("q", passive=True))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no queue 'q' in vhost '/'")
    peer.declare("q")
    peer.publish("", "q").publish("", "q")
    assert peer.declare("q", passive=True) == methods.QueueDeclareOk("q", 2, 0)
    assert peer.declare("q", passive=True, durable=True) == methods.QueueDeclareOk("q", 2, 0)


def test_no_wait_is_not_answered() -> None:
    peer = World().peer()
    assert peer.send(methods.QueueDeclare("q", no_wait=True)).heard() == []
    assert peer.counts("q") == (0, 0)


def test_line_ends_are_no_part_of_a_name() -> None:
    assert World().peer().declare("a\r\nb").queue == "ab"


def test_counts_are_of_ready_messages_and_consumers() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.send(methods.BasicQos(0, 1, False))
    peer.consume("q", "a")
    peer.consume("q", "b")
    for _ in range(5):
        peer.say_publish("", "q")
    peer.say(methods.QueueDeclare("q", passive=True)).flush()
    answers = [method for method in peer.heard() if isinstance(method, methods.QueueDeclareOk)]
    assert answers == [methods.QueueDeclareOk("q", 3, 2)]


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({}, {"durable": True}, "'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'"),
        (
            {"auto_delete": True},
            {},
            "'auto_delete' for queue 'q' in vhost '/': received 'false' but current is 'true'",
        ),
        (
            {},
            {"arguments": {"x-message-ttl": Int32(1)}},
            "'x-message-ttl' for queue 'q' in vhost '/': "
            "received the value '1' of type 'signedint' but current is none",
        ),
        (
            {"arguments": {"x-max-length": Int32(1)}},
            {"arguments": {"x-max-length": Int32(2)}},
            "'x-max-length' for queue 'q' in vhost '/': received '2' but current is '1'",
        ),
        (
            {"arguments": {"x-overflow": "drop-head"}},
            {},
            "'x-overflow' for queue 'q' in vhost '/': "
            "received none but current is the value 'drop-head' of type 'longstr'",
        ),
        (
            {"durable": True, "arguments": {"x-queue-type": "quorum"}},
            {"durable": True, "arguments": {"x-queue-type": "classic"}},
            "'x-queue-type' for queue 'q' in vhost '/': received 'classic' but current is 'quorum'",
        ),
    ],
)
def test_a_second_declare_must_agree(first: dict[str, Any], second: dict[str, Any], text: str) -> None:
    peer = World().peer()
    peer.declare("q", **first)
    close = peer.refused(methods.QueueDeclare("q", **second))
    assert close.reply_code == 406
    assert close.reply_text == f"PRECONDITION_FAILED - inequivalent arg {text}"
    peer.declare("q", **first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"x-max-length": Int32(5)}, {"x-max-length": 5}),
        ({}, {"x-queue-type": "classic"}),
        ({"x-queue-type": "classic"}, {}),
        ({"x-mine": 1}, {"x-mine": 2}),
        ({"x-mine": 1}, {}),
    ],
)
def test_equivalent_arguments_declare_the_same_queue(first: dict[str, Any], second: dict[str, Any]) -> None:
    peer = World().peer()
    peer.declare("q", arguments=first)
    peer.declare("q", arguments=second)


def test_an_exclusive_queue_is_its_connections_alone() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    peer.declare("q", exclusive=True)
    peer.call(methods.QueueBind("q", "amq.direct", "bound"), expect=methods.QueueBindOk)
    for method in (
        methods.QueueDeclare("q"),
        methods.QueueDeclare("q", exclusive=True),
        methods.QueueDeclare("q", passive=True),
        methods.QueueDelete("q"),
        methods.QueuePurge("q"),
        methods.QueueBind("q", "amq.direct"),
        methods.QueueUnbind("q", "amq.direct", "bound"),
        methods.BasicConsume("q"),
        methods.BasicGet("q"),
    ):
        close = other.refused(method)
        assert (close.reply_code, close.reply_text) == (405, LOCKED)
    # Publishing to it is for everybody.
    other.publish("", "q")
    assert peer.counts("q") == (1, 0)
    assert peer.refused(methods.QueueDeclare("q")).reply_code == 405
    peer.leave()
    assert other.refused(methods.QueueDeclare("q", passive=True)).reply_code == 404


def test_a_shared_queue_does_not_become_exclusive() -> None:
    peer = World().peer()
    peer.declare("q")
    assert peer.refused(methods.QueueDeclare("q", exclusive=True)).reply_text == LOCKED


def test_exclusive_queues_belong_to_the_connection_not_to_the_channel() -> None:
    peer = World().peer()
    peer.declare("q", exclusive=True)
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.declare("q", exclusive=True, durable=True)


def test_an_empty_name_means_the_last_declared_queue() -> None:
    peer = World().peer()
    for method in (
        methods.QueueBind("", "amq.direct", "k"),
        methods.QueueUnbind("", "amq.direct", "k"),
        methods.QueuePurge(),
        methods.QueueDelete(),
        methods.BasicGet(),
        methods.BasicConsume(),
    ):
        close = peer.refused(method)
        assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no previously declared queue")
    name = peer.declare("").queue
    peer.call(methods.QueueBind("", "amq.direct"), expect=methods.QueueBindOk)
    peer.publish("amq.direct", name, b"by its name")
    got = peer.get("")
    assert got is not None
    assert got.body == b"by its name"
    peer.call(methods.QueueDelete(), expect=methods.QueueDeleteOk)
