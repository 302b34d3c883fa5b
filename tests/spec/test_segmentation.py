"""The division of bytes into segments must not matter: the same conversation has the same answers, whole or in pieces.

Deliveries, returns and confirms may come earlier or later among the answers to methods; the order of each is fixed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.support.client import Channel, Connect, Connection

pytestmark = pytest.mark.ours_only
UNSOLICITED = ("basic.deliver", "basic.return", "basic.ack", "basic.nack", "basic.cancel")


def _everything(channel: Channel, name: str) -> None:
    channel.send("confirm.select")
    channel.send("queue.declare", queue=name, exclusive=True, arguments={"x-max-length": 6, "x-max-priority": 3})
    for number in range(9):
        channel.publish(str(number), name, priority=number % 3)
    channel.send("basic.qos", prefetch_count=2)
    channel.send("basic.consume", queue=name, consumer_tag="t")
    channel.send("queue.declare", queue=name, passive=True)
    channel.send("basic.ack", delivery_tag=1)
    channel.publish("nowhere", name + "-missing", mandatory=True)
    # The messages are counted after the deliveries: a delivery for which the ack made room is under way before the
    # requeue.
    channel.send("queue.declare", queue=name, passive=True)
    channel.send("basic.nack", delivery_tag=2, requeue=True)
    channel.send("queue.declare", queue=name, passive=True)
    channel.send("basic.get", queue=name, no_ack=True)
    channel.send("basic.cancel", consumer_tag="t")
    channel.send("queue.purge", queue=name)
    channel.send("queue.delete", queue=name)


def _routing(channel: Channel, name: str) -> None:
    channel.send("queue.declare", queue=name, exclusive=True)
    channel.send("basic.consume", queue=name, consumer_tag="t", no_ack=True)
    for key in ("a.*", "b.#", "#.c"):
        channel.send("queue.bind", queue=name, exchange="amq.topic", routing_key=f"{name}.{key}")
        for sent in ("a.x", "b", "b.x.y", "x.c", "a.x.c"):
            channel.publish(f"{key} {sent}", f"{name}.{sent}", "amq.topic", mandatory=True)
    channel.send("queue.unbind", queue=name, exchange="amq.topic", routing_key=f"{name}.b.#")
    channel.publish("last", f"{name}.b", "amq.topic", mandatory=True)


def _transactions(channel: Channel, name: str) -> None:
    channel.send("tx.select")
    channel.send("queue.declare", queue=name, exclusive=True)
    for number in range(6):
        channel.publish(str(number), name)
        channel.send("tx.commit" if number % 2 else "tx.rollback")
        channel.send("basic.get", queue=name, no_ack=number % 3 == 0)
    channel.send("basic.ack", delivery_tag=0, multiple=True)
    channel.send("tx.commit")
    channel.send("queue.declare", queue=name, passive=True)


def _an_error_in_the_middle(channel: Channel, name: str) -> None:
    channel.send("queue.declare", queue=name, exclusive=True)
    channel.publish("before", name)
    channel.send("basic.get", queue=name)
    channel.send("basic.ack", delivery_tag=5)
    channel.publish("after", name)
    channel.send("queue.delete", queue=name)


def _a_fault_in_the_middle(channel: Channel, name: str) -> None:
    channel.send("queue.declare", queue=name, exclusive=True)
    channel.publish("before", name)
    channel.send("basic.get", queue=name, no_ack=True)
    channel.connection.send_frame(7, 1, b"fault")
    channel.publish("after", name)


SCRIPTS: list[Callable[[Channel, str], None]] = [
    _everything,
    _routing,
    _transactions,
    _an_error_in_the_middle,
    _a_fault_in_the_middle,
]


def recorded(connection: Connection, script: Callable[[Channel, str], None], name: str) -> bytes:
    """Returns the bytes of the script, without sending them."""
    connection.recording = True
    with connection.in_segments("none"):
        script(Channel(connection, 1), name)
    return b"".join(connection.sent)


def answers(connection: Connection, pieces: list[bytes]) -> tuple[list[Any], list[Any]]:
    """Returns the answers to methods, and all unrequested methods, each in order."""
    connection.channel(1)
    last = connection.channel(2)
    for piece in pieces:
        connection.socket.sendall(piece)
    # A request that is repeated on another channel is answered after all requests of the script.
    for _ in range(2):
        last.send("channel.flow", active=True)
    seen = connection.methods_seen
    while seen[-1].name != "connection.close" and [method.channel for method in seen].count(2) < 3:
        connection.take_in()
    with contextlib.suppress(AssertionError, OSError):
        connection.close()
    told = [method for method in seen if method.channel == 1 or method.name == "connection.close"]
    plain = [(method.name, method.arguments, method.properties, method.body) for method in told]
    return [one for one in plain if one[0] not in UNSOLICITED], [one for one in plain if one[0] in UNSOLICITED]


def by_name(unasked: list[Any]) -> dict[str, Any]:
    """Groups them by kind, each in its own order. Confirms may come one by one or for several at once: only the last
    number counts."""
    acks = [arguments["delivery_tag"] for name, arguments, _, _ in unasked if name == "basic.ack"]
    others = {name: [one for one in unasked if one[0] == name] for name in UNSOLICITED if name != "basic.ack"}
    return {**others, "basic.ack": max(acks, default=0)}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_answers_are_the_same(connect: Connect, script: Callable[[Channel, str], None], name: str) -> None:
    sent = recorded(connect(), script, name)
    random = Random(7)
    whole = [sent]
    bytewise = [sent[place : place + 1] for place in range(len(sent))]
    cuts = sorted(random.sample(range(1, len(sent)), 12))
    anyhow = [sent[start:end] for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    found = [answers(connect(), pieces) for pieces in (whole, bytewise, anyhow)]
    assert found[0][0] == found[1][0] == found[2][0]
    assert by_name(found[0][1]) == by_name(found[1][1]) == by_name(found[2][1])
