"""An exception at any call inside a front while it handles one client's request: nothing is left of the request on the
front or on its trunk, or the front says that its state is in doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.containment import StateInDoubt
from pandomq.sim.injection import Injected, Injection
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster

CALLS_MAX = 1_000

REQUESTS: dict[str, Callable[[Peer], Peer]] = {
    "a private queue": lambda peer: peer.say(methods.QueueDeclare("mine", exclusive=True)),
    "a consumer of replies": lambda peer: peer.say(methods.BasicConsume("amq.rabbitmq.reply-to", "r", no_ack=True)),
    "a binding": lambda peer: peer.say(methods.QueueBind("private", "amq.topic", "a.#")),
    "an unbinding": lambda peer: peer.say(methods.QueueUnbind("private", "amq.fanout", "")),
    "a deletion": lambda peer: peer.say(methods.QueueDelete("private")),
    "a consumer": lambda peer: peer.say(methods.BasicConsume("private", "t", exclusive=True)),
    "a shared queue": lambda peer: peer.say(methods.QueueDeclare("q", durable=True)),
    "a close": lambda peer: peer.say(methods.ChannelClose(200, "", 0, 0)),
    "an unknown tag": lambda peer: peer.say_publish("", "nowhere", mandatory=True).say(methods.BasicAck(9, False)),
    "a publish": lambda peer: peer.say_publish("amq.fanout", "", b"m"),
}


def prepared() -> tuple[Cluster, Peer]:
    cluster = Cluster()
    bystander = cluster.front.peer()
    bystander.declare("other", exclusive=True)
    bystander.call(methods.QueueBind("other", "amq.direct", "k"), expect=methods.QueueBindOk)
    culprit = cluster.front.peer()
    culprit.declare("private", exclusive=True)
    culprit.call(methods.QueueBind("private", "amq.fanout", ""), expect=methods.QueueBindOk)
    return cluster, culprit


def left(cluster: Cluster, culprit: Peer) -> dict[str, Any]:
    """Returns the state on the front and at the root, after the client has disconnected."""
    front, world = cluster.front.broker, cluster.front
    cluster.settle()
    front.disconnect(culprit.client, world.now_ms)
    cluster.front.run([])
    cluster.settle()
    assert cluster.root is not None
    seen: dict[str, Any] = {}
    for where, broker in (("front", front), ("root", cluster.root.broker)):
        vhost = broker.state.vhosts["/"]
        seen[where] = (
            sorted([*vhost.queues, *vhost.reply_queues]),
            vhost.router.binding_count,
            {name: len(exchange.bindings()) for name, exchange in vhost.router.exchanges.items()},
            len(broker.clients),
            broker.consumer_count,
        )
    (trunk,) = front.trunks.values()
    seen["trunk"] = (sorted(trunk.claims.names), sorted(trunk.bindings._metas))
    return seen


def fails(name: str, calls: int, expected: dict[str, Any]) -> bool:
    raised: list[bool] = []
    cluster, culprit = prepared()
    REQUESTS[name](culprit)
    world, batch = cluster.front, [(culprit.client, culprit.take_inputs())]
    injection = Injection(calls, within="Front.handle", told=lambda: raised.append(True))
    try:
        outcome = injection.around(world.broker.handle)(batch, world.now_ms)
    except (StateInDoubt, Injected):
        return True
    if not raised:
        return False
    assert [(client, fault.reply_code) for client, fault in outcome.closing] == [(culprit.client, 541)]
    found = left(cluster, culprit)
    for where, value in expected.items():
        assert found[where] == value, f"{where}, after an exception at call {calls}"
    return True


@pytest.mark.proves("R38")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_fails_at_any_call_leaves_nothing_or_doubt(name: str) -> None:
    expected = left(*prepared())
    assert any(not fails(name, calls, expected) for calls in range(1, CALLS_MAX))
