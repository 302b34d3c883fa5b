"""An exception at any call inside the broker while it handles one request: either nothing is left of the request, or
the broker reports that its state is in doubt.

Each request is made again and again, in a fresh world each time, and fails at the first call, at the second, and so on,
until it does not fail any more. The state afterwards is compared with that of a world in which the client only
disconnected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.containment import StateInDoubt
from pandomq.fieldtable import Timestamp
from pandomq.methods import Method
from pandomq.properties import Properties
from pandomq.sim.injection import Injected, Injection
from pandomq.sim.state.live_state import live_state
from tests.unit.broker.conversation import Peer, World

CALLS_MAX = 2_000
OWN_PRODUCER = 7
PERSISTENT = Properties(delivery_mode=2)
STREAM = {"x-queue-type": "stream"}
DELAYED = {"x-delayed-type": "fanout"}
DYING = {"x-dead-letter-exchange": "amq.fanout"}


def said(*some: Method) -> Callable[[Peer], object]:
    def say(peer: Peer) -> None:
        for method in some:
            peer.say(method)

    return say


def published(exchange: str, key: str, *before: Method, after: tuple[Method, ...] = (), **options: Any) -> Any:
    properties = options.pop("properties", PERSISTENT)

    def say(peer: Peer) -> None:
        said(*before)(peer)
        peer.say_publish(exchange, key, b"m", properties, **options)
        said(*after)(peer)

    return say


REQUESTS: dict[str, Callable[[Peer], object]] = {
    "exclusive queue": said(methods.QueueDeclare("mine", exclusive=True, arguments={"x-expires": 1000})),
    "shared queue": said(methods.QueueDeclare("new", durable=True, arguments={"x-expires": 1000})),
    "stream": said(methods.QueueDeclare("new", durable=True, arguments=STREAM)),
    "binding of an exclusive queue": said(methods.QueueBind("private", "amq.topic", "a.#")),
    "binding": said(methods.QueueBind("q", "amq.topic", "a.#")),
    "unbinding of an exclusive queue": said(methods.QueueUnbind("private", "passing", "")),
    "unbinding": said(methods.QueueUnbind("q", "vain", "")),
    "deletion of an exclusive queue": said(methods.QueueDelete("private")),
    "deletion": said(methods.QueueDelete("q")),
    "purge": said(methods.QueuePurge("q")),
    "exchange": said(methods.ExchangeDeclare("new", "x-delayed-message", durable=True, arguments=DELAYED)),
    "deletion of an exchange": said(methods.ExchangeDelete("vain")),
    "binding of an exchange": said(methods.ExchangeBind("amq.topic", "amq.fanout", "")),
    "consumer": said(methods.BasicConsume("q", "t", exclusive=True)),
    "consumer of a stream": said(
        methods.BasicQos(0, 10, False), methods.BasicConsume("s", "t", arguments={"x-stream-offset": Timestamp(1)})
    ),
    "consumer of replies": said(methods.BasicConsume("amq.rabbitmq.reply-to", "r", no_ack=True)),
    "cancel": said(methods.BasicCancel("held")),
    "get": said(methods.BasicGet("q", no_ack=False)),
    "get without an ack": said(methods.BasicGet("q", no_ack=True)),
    "ack": said(methods.BasicAck(1, False)),
    "reject": said(methods.BasicReject(1, False)),
    "an unknown tag": said(methods.BasicAck(99, False)),
    "recover": said(methods.BasicRecover(True)),
    "publish": published("", "q"),
    "publish that comes back": published("", "nowhere", mandatory=True, after=(methods.BasicQos(0, 1, False),)),
    "publish to no exchange": published("nowhere", ""),
    "publish with copies": published("", "q", properties=Properties(headers={"CC": ["private"], "BCC": ["s"]})),
    "publish for later": published("later", "", properties=Properties(headers={"x-delay": 1000}, expiration="60000")),
    "numbered publish": published("", "q", properties=Properties(headers={"x-producer": "p", "x-sequence": 1})),
    "transaction": published(
        "", "q", methods.TxSelect(), after=(methods.BasicReject(1, False), methods.TxCommit()), mandatory=True
    ),
    "numbered transaction": published(
        "",
        "nowhere",
        methods.TxSelect(),
        after=(methods.TxCommit(),),
        properties=Properties(headers={"x-producer": "p", "x-sequence": 1}),
    ),
    "rollback": published("", "q", methods.TxSelect(), after=(methods.TxRollback(),)),
    "uncommitted publish": published("", "q", methods.TxSelect()),
    "close of the channel": said(methods.ChannelClose(200, "", 0, 0)),
    "a second mode": published("", "nowhere", methods.ConfirmSelect(), after=(methods.TxSelect(),), mandatory=True),
}
OF_FRONTS: dict[str, Callable[[Peer], object]] = {
    "channel": lambda peer: peer.say(methods.ChannelOpen("9:0:0"), channel=2),
    "channel that takes another one's place": lambda peer: peer.say(methods.ChannelOpen("8:0:0"), channel=2),
    "transaction": published("", "nowhere", methods.TxSelect(), after=(methods.TxCommit(),)),
    "close": published("", "nowhere", methods.ConfirmSelect(), after=(methods.ChannelClose(200, "", 0, 0),)),
}


def prepared(origin: str | None = None) -> tuple[World, Peer]:
    """A world with queues and messages, and the client that is about to make the request."""
    world = World()
    bystander = world.peer()
    bystander.declare("q", durable=True, arguments=DYING)
    bystander.declare("s", durable=True, arguments=STREAM)
    for name, kind, arguments in (("later", "x-delayed-message", DELAYED), ("vain", "fanout", {})):
        declare = methods.ExchangeDeclare(name, kind, durable=True, auto_delete=name == "vain", arguments=arguments)
        bystander.call(declare, expect=methods.ExchangeDeclareOk)
    bystander.call(methods.QueueBind("q", "vain", ""), expect=methods.QueueBindOk)
    for number in range(3):
        bystander.publish("", "q", b"%d" % number, PERSISTENT)
    other = world.connect(origin="n3")
    other.call(methods.ChannelOpen("8:0:0"), expect=methods.ChannelOpenOk)
    culprit = world.connect(origin=origin)
    culprit.call(methods.ChannelOpen(f"{OWN_PRODUCER}:0:0" if origin else ""), expect=methods.ChannelOpenOk)
    if origin is None:
        culprit.declare("private", exclusive=True)
        passing = methods.ExchangeDeclare("passing", "fanout", auto_delete=True)
        culprit.call(passing, expect=methods.ExchangeDeclareOk)
        culprit.call(methods.QueueBind("private", "passing", ""), expect=methods.QueueBindOk)
        culprit.declare("passing", auto_delete=True)
        numbered = Properties(headers={"x-producer": "p", "x-sequence": 0})
        culprit.publish("", "nowhere", properties=numbered)
        culprit.send(methods.BasicConsume("passing", "held"))
        culprit.send(methods.BasicGet("q", no_ack=False))
    culprit.hear()
    return world, culprit


def left(world: World, culprit: Peer) -> dict[str, Any]:
    """Returns the broker's state after the client has disconnected."""
    broker = world.broker
    world.run([])
    culprit.leave()
    vhost = broker.state.vhosts["/"]
    seen = live_state(broker)
    seen["queues that are there"] = {
        name: (queue.kernel.consumer_count, queue.exclusive_consumer, queue.kernel.unacked_count)
        for names in (vhost.queues, vhost.reply_queues, vhost.inner_queues)
        for name, queue in names.items()
    }
    seen["bindings"] = {
        name: sorted((binding.destination.name, binding.routing_key) for binding in exchange.bindings())
        for name, exchange in vhost.router.exchanges.items()
    }
    seen["counts"] = (
        vhost.router.binding_count,
        {name: len(bindings) for name, bindings in vhost.router._to_queue.items()},
        vhost.connection_count,
        broker.consumer_count,
        {user: (tally.connection_count, tally.channel_count) for user, tally in broker.tallies.items()},
        len(broker.clients),
        len(broker.admissions),
        len(broker.held),
        broker.uncommitted.size_bytes,
        broker.uncommitted._of_users,
        broker.engine.held_messages,
        broker.engine.held_bytes,
        len(broker.engine.returned),
        len(broker.deduplication._touched),
        [exchange.name for exchange in vhost.orphans],
    )
    of_fronts = broker.producers
    seen["relayed producers"] = (
        sorted(of_fronts._channels),
        # How far the client's own producer has come is noted when it is closed.
        [row[:2] for row in of_fronts._handled.rows() if row[0] != OWN_PRODUCER],
        [row[:2] for row in broker.state.producers.rows()],
    )
    return seen


def fails(request: Callable[[Peer], object], origin: str | None, calls: int, expected: dict[str, Any]) -> bool:
    """Whether it failed. If the broker goes on, nothing is left of the request."""
    raised: list[bool] = []
    world, culprit = prepared(origin)
    request(culprit)
    batch = [(culprit.client, culprit.take_inputs())]
    injection = Injection(calls, within="Broker.handle", told=lambda: raised.append(True))
    try:
        outcome = injection.around(world.broker.handle)(batch, world.now_ms)
    except (StateInDoubt, Injected):
        # Nothing of the batch goes out, and another broker is made from the log.
        return True
    if not raised:
        return False
    world._finish(outcome)
    assert world.closed[culprit.client].reply_code == 541
    found = left(world, culprit)
    for name, value in expected.items():
        assert found[name] == value, f"{name}, after an exception at call {calls}"
    return True


@pytest.mark.proves("R38")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_fails_at_any_call_leaves_nothing_or_doubt(name: str) -> None:
    expected = left(*prepared())
    assert any(not fails(REQUESTS[name], None, calls, expected) for calls in range(1, CALLS_MAX))


@pytest.mark.proves("R38")
@pytest.mark.parametrize("name", OF_FRONTS)
def test_a_front_s_request_that_fails_at_any_call_leaves_nothing_or_doubt(name: str) -> None:
    expected = left(*prepared("n2"))
    assert any(not fails(OF_FRONTS[name], "n2", calls, expected) for calls in range(1, CALLS_MAX))
