"""An exception at any call inside the broker while the data port or an administrator asks it for something: either the
broker counts a change, and then its state is in doubt, or nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.leases.asks import LeaseAsk
from pandomq.broker.log.commands import DeleteUser, DeleteVhost, PutPolicy, PutTracing, PutUser, PutVhost
from pandomq.broker.staging.names import StagingAttempt
from pandomq.broker.staging.staging import Chosen
from pandomq.properties import Properties
from pandomq.sim.injection import Injected, Injection
from pandomq.sim.state.live_state import live_state
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.lease_scene import BYTES_MAX, TIMEOUT_MS
from tests.unit.broker.staging_scene import Sink, frames

CALLS_MAX = 1_000
PERSISTENT = Properties(delivery_mode=2)
STREAM = {"x-queue-type": "stream"}

Request = Callable[[World], object]


def ignore_reply(*_: object) -> None:
    """For answers."""


def leased(world: World, name: str = "new", messages_max: int = 2) -> None:
    ask = LeaseAsk("/", "q", name, "guest", messages_max, BYTES_MAX, TIMEOUT_MS)
    world.broker.leases.lease(ask, ignore_reply, world.now_ms)


def staged(world: World, attempt: str, part: int) -> None:
    vhost = world.broker.state.vhosts["/"]
    access = vhost.access["guest"]
    world.broker.staging.stage(
        vhost, access, StagingAttempt(0, 0, attempt, "w"), part, frames("a"), ignore_reply, world.now_ms
    )


def committed(world: World) -> None:
    vhost = world.broker.state.vhosts["/"]
    chosen = [Chosen(0, "a", 1)]
    world.broker.staging.commit(vhost, vhost.access["guest"], "w", 0, chosen, ignore_reply, ignore_reply, world.now_ms)


def dropped(world: World) -> None:
    vhost = world.broker.state.vhosts["/"]
    world.broker.staging.drop(vhost, "guest", [StagingAttempt(0, 0, "b", "w")], ignore_reply, world.now_ms)


def administered(command: Any) -> Request:
    return lambda world: world.broker.administration.submit(command, ignore_reply, world.now_ms)


REQUESTS: dict[str, Request] = {
    "a lease": leased,
    "more of a lease": lambda world: leased(world, "old", 3),
    "a release": lambda world: world.broker.leases.release(
        "/", "q", "old", world.broker.leases._table.of_queue("/", "q")[0].first_offset + 1, ignore_reply, world.now_ms
    ),
    "the end of a lease": lambda world: world.broker.leases.end("/", "q", "old", ignore_reply, world.now_ms),
    "the first part": lambda world: staged(world, "new", 0),
    "one more part": lambda world: staged(world, "a", 1),
    "a commit": committed,
    "a drop": dropped,
    "an offset": lambda world: world.broker.streams.store_offset(
        "/", "s", "guest", "reader", 1, ignore_reply, world.now_ms
    ),
    "a user": administered(PutUser("new", "", "scrypt", ())),
    "the end of a user": administered(DeleteUser("ann")),
    "a vhost": administered(PutVhost("new")),
    "the end of a vhost": administered(DeleteVhost("other")),
    "traces": administered(PutTracing("/", 1.0)),
    "a policy": administered(PutPolicy("/", "p", ".*", "all", 0, b'{"expires":1000,"message-ttl":5}')),
}


def prepared() -> tuple[World, list[Peer]]:
    world = World()
    world.admit("ann")
    assert world.administer(PutVhost("other")) is None
    world.admit("bob", vhost="other")
    peers = [world.peer(), world.peer("ann"), world.peer("bob", vhost="other")]
    peers[0].declare("q", durable=True)
    peers[0].declare("s", durable=True, arguments=STREAM)
    peers[2].declare("q", durable=True)
    peers[2].send(methods.BasicConsume("q", "t"))
    for key in ("q", "q", "q", "q", "s", "s"):
        peers[0].publish("", key, b"m", PERSISTENT)
    leased(world, "old")
    world.run([])
    sink = Sink(world)
    sink.stage(frames("one"))
    sink.stage(frames("one"), attempt="b")
    return world, peers


def seen_of(world: World, peers: list[Peer]) -> dict[str, Any]:
    broker = world.broker
    world.run([])
    seen = live_state(broker)
    seen["leases"] = (list(broker.state.leases.commands()), len(broker.leases.expiry._due_ms))
    seen["acked"] = sorted(broker.leases._acks.values())
    seen["inner queues"] = {
        name: sorted((queue.name, queue.kernel.ready_count) for queue in vhost.inner_queues.values())
        for name, vhost in broker.state.vhosts.items()
    }
    seen["clients"] = [(peer.client.failed, peer.client in world.closed) for peer in peers]
    seen["counts"] = {user: (tally.connection_count, tally.channel_count) for user, tally in broker.tallies.items()}
    seen["traced"] = list(broker.tracing.traced)
    return seen


def fails(request: Request, calls: int, expected: dict[str, Any]) -> bool:
    raised: list[bool] = []
    world, peers = prepared()
    changes = world.broker.changes
    injection = Injection(calls, within=None, told=lambda: raised.append(True))
    try:
        injection.around(request)(world)
    except Injected:
        if world.broker.changes != changes:
            return True
    if not raised:
        return False
    found = seen_of(world, peers)
    for name, value in expected.items():
        assert found[name] == value, f"{name}, after an exception at call {calls}"
    return True


@pytest.mark.proves("R38")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_fails_at_any_call_changes_nothing_or_reports_doubt(name: str) -> None:
    expected = seen_of(*prepared())
    assert any(not fails(REQUESTS[name], calls, expected) for calls in range(1, CALLS_MAX))
