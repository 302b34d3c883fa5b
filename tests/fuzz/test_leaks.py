"""Closed connections and deleted objects leave nothing behind: after thousands of short lives hardly an object is left.

Caches and heaps that are cleaned at intervals may keep some objects for a while; the bound allows for those, and is far
below the number of lives.
"""

from __future__ import annotations

import contextlib
import gc
import logging
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from pandomq import kernel
from tests.fuzz.cases import OPENING
from tests.fuzz.node_world import NodeWorld
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, frame
from tests.support.methods import encode

LIVES = 1600
KEPT_MAX = 1100
WITHOUT_CYCLES = pytest.mark.skipif(kernel.KIND == "plain", reason="the plain kernel's parts know each other")
WATCHED = ("Client", "Session", "Channel", "Consumer", "Queue", "Exchange", "Message", "Link", "Connection")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def method(name: str, **arguments: Any) -> bytes:
    return frame(METHOD, 1, encode(name, **arguments))


def publish(exchange: str, key: str, body: bytes = b"m", **properties: Any) -> bytes:
    header = frame(HEADER, 1, content_header(len(body), properties))
    return method("basic.publish", exchange=exchange, routing_key=key) + header + frame(BODY, 1, body)


def alive() -> Counter[str]:
    """Counts the broker's objects by the names of their types, after a run of the collector."""
    gc.collect()
    kinds = Counter(type(one) for one in gc.get_objects())
    ours = {kind: count for kind, count in kinds.items() if str(kind.__module__).startswith("pandomq.")}
    return Counter({name: sum(ours[kind] for kind in ours if kind.__name__ == name) for name in WATCHED})


EXCLUSIVE = {"queue": "own", "exclusive": True}
# The methods of each life after the connection is open; `own` is its exclusive queue, `shared` outlives all of them.
LIVES_OF: dict[str, bytes] = {
    "idle": b"",
    "a queue of its own": method("queue.declare", **EXCLUSIVE) + publish("", "own"),
    "a queue named by the broker": method("queue.declare", queue="", exclusive=True),
    "a queue whose messages would expire": method("queue.declare", arguments={"x-message-ttl": 50}, **EXCLUSIVE)
    + publish("", "own"),
    "a message that would expire": method("queue.declare", **EXCLUSIVE) + publish("", "own", expiration="50"),
    "a queue that would expire": method("queue.declare", arguments={"x-expires": 50}, **EXCLUSIVE),
    "a consumer with messages out": method("basic.consume", queue="shared") + publish("", "shared"),
    "a consumer with little time": method("queue.declare", arguments={"x-consumer-timeout": 50}, **EXCLUSIVE)
    + method("basic.consume", queue="own")
    + publish("", "own"),
    "a transaction": method("tx.select") + publish("", "shared") * 3,
    "confirms": method("confirm.select") + publish("", "nowhere") * 3,
    "direct reply-to": method("basic.consume", queue="amq.rabbitmq.reply-to", no_ack=True)
    + publish("", "nowhere", reply_to="amq.rabbitmq.reply-to"),
    "bindings": method("queue.declare", **EXCLUSIVE)
    + method("queue.bind", queue="own", exchange="amq.topic", routing_key="a.#")
    + publish("amq.topic", "a.b"),
    "an exchange that goes with it": method("exchange.declare", exchange="x", type="fanout", auto_delete=True)
    + method("queue.declare", **EXCLUSIVE)
    + method("queue.bind", queue="own", exchange="x")
    + publish("x", ""),
    "an error": method("queue.declare", queue="missing", passive=True),
    "a fault": frame(7, 0, b"x"),
    "a method that cannot be read": publish("", "nowhere") + frame(METHOD, 1, b"\x00\x32\x00\x0a"),
    "a method for the connection": publish("", "nowhere") + method("connection.open"),
    "no such exchange type": method("exchange.declare", exchange="x", type="nonsense"),
    "a channel that is open already": method("channel.open"),
    "a method out of place": frame(METHOD, 0, encode("connection.tune-ok")),
}
TELLING = ("a consumer with messages out", "a fault", "a message that would expire", "a transaction", "bindings")
"""The lives of which `make test` lets thousands pass. Of each of the others it only checks that it leaves no cycle."""


@pytest.fixture
def world() -> NodeWorld:
    world = NodeWorld(Random(1))
    client = world.client()
    channel = client.channel()
    channel.declare_queue("shared", exclusive=False, arguments={"x-max-length": 5})
    client.close()
    return world


def live_and_die(world: NodeWorld, said: bytes) -> None:
    socket = world.connect()
    world.send(socket, said)
    world.settle()
    world.hang_up(socket)
    world.settle()
    world.pass_time(100)


@pytest.mark.parametrize(
    "life", [pytest.param(life, marks=[] if life in TELLING else pytest.mark.slow) for life in LIVES_OF]
)
def test_connections_that_are_over(world: NodeWorld, life: str) -> None:
    before = alive()
    for _ in range(LIVES):
        live_and_die(world, OPENING + LIVES_OF[life])
    check(before)


@pytest.mark.parametrize(
    "said",
    [b"", b"AMQP", PROTOCOL_HEADER, OPENING[:60], b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 50],
    ids=["silence", "part of the header", "header", "part of the opening", "another protocol", "noise"],
)
def test_connections_that_never_were_open(world: NodeWorld, said: bytes) -> None:
    before = alive()
    for _ in range(LIVES):
        live_and_die(world, said)
    check(before)


@pytest.mark.parametrize("arguments", [{}, {"x-message-ttl": 50}, {"x-expires": 500}, {"x-max-priority": 5}], ids=str)
def test_queues_that_are_deleted(world: NodeWorld, arguments: dict[str, Any]) -> None:
    client = world.client()
    channel = client.channel()
    before = alive()
    for number in range(LIVES):
        name = f"q{number}"
        channel.send("queue.declare", queue=name, no_wait=True, arguments=arguments)
        channel.publish("m", name)
        channel.send("queue.delete", queue=name, no_wait=True)
        world.pass_time(100)
    check(before)


@WITHOUT_CYCLES
@pytest.mark.parametrize("life", LIVES_OF)
def test_connections_that_are_over_leave_no_cycles(world: NodeWorld, life: str) -> None:
    """The collector runs so seldom here that objects which wait for it would show as a leak."""
    with no_cycles():
        for _ in range(20):
            live_and_die(world, OPENING + LIVES_OF[life])


@WITHOUT_CYCLES
@pytest.mark.parametrize("said", [OPENING[:60] + b"\xff" * 50, b"\xff" * 50], ids=["a broken opening", "noise"])
def test_connections_that_never_were_open_leave_no_cycles(world: NodeWorld, said: bytes) -> None:
    with no_cycles():
        for _ in range(20):
            live_and_die(world, said)


@WITHOUT_CYCLES
def test_channels_and_queues_that_are_over_leave_no_cycles(world: NodeWorld) -> None:
    client = world.client()
    with no_cycles():
        for number in range(20):
            channel = client.channel(2)
            channel.declare_queue(f"q{number}", exclusive=number % 2 == 0)
            channel.consume(f"q{number}")
            channel.publish("m", f"q{number}")
            channel.delivery()
            channel.rpc("queue.delete", queue=f"q{number}")
            channel.expect("basic.cancel")
            if number % 3:
                channel.rpc("channel.close")
            else:
                channel.refused(404, "NOT_FOUND - …", "basic.get", queue="missing")
            world.settle()


@contextlib.contextmanager
def no_cycles() -> Iterator[None]:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        found = Counter(type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("pandomq."))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not found, f"only the collector could free {dict(found)}"


def check(before: Counter[str]) -> None:
    kept = alive() - before
    assert max(kept.values(), default=0) <= KEPT_MAX, f"after {LIVES} lives there are still {dict(kept)}"
