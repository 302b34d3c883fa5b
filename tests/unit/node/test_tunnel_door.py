"""The root's end of tunnels: who is let in, as whom, and what is seen of it."""

from __future__ import annotations

import pytest

from pandomq.cluster.introduction import Stage
from pandomq.cluster.tunnel_end import ClosedByRoot
from pandomq.kernel import DeliveryRun
from pandomq.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicPublish,
    ChannelOpen,
    ChannelOpenOk,
    MethodInput,
    QueueDeclare,
    QueueDeclareOk,
)
from pandomq.properties import Properties, encode_header
from pandomq.wire.codec import encode_content
from tests.unit.node.link_world import LinkWorld
from tests.unit.node.raw_tunnel import PEER, RawTunnel


@pytest.fixture(scope="module")
def world() -> LinkWorld:
    made = LinkWorld(3)
    made.until(lambda: made.root is not None and made.all_linked())
    return made


def root_and_backup(world: LinkWorld) -> tuple[str, str]:
    assert world.root is not None
    return world.root, next(name for name in world.machines if name != world.root)


def methods(inputs: list[object]) -> list[object]:
    return [item.method for item in inputs if isinstance(item, MethodInput)]


def test_a_tunnel_is_a_client_of_the_root(world: LinkWorld) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, backup, root)
    assert tunnel.end.stage is Stage.OPEN and tunnel.end.let_in
    (opened,) = methods([*tunnel.say(ChannelOpen())])
    assert isinstance(opened, ChannelOpenOk)
    (declared,) = methods([*tunnel.say(QueueDeclare("q", durable=True))])
    assert isinstance(declared, QueueDeclareOk) and declared.queue == "q"
    (consuming,) = methods([*tunnel.say(BasicConsume("q", "tag", no_ack=True))])
    assert isinstance(consuming, BasicConsumeOk)
    heard = tunnel.write(encode_content(1, BasicPublish("", "q"), encode_header(4, Properties()), b"body", 4096))
    (run,) = heard
    assert isinstance(run, DeliveryRun) and len(run) == 1
    channel, tag, number, redelivered, message = run[0]
    assert (channel, bytes(tag), number, redelivered, bytes(message.body)) == (1, b"tag", 1, False, b"body")
    tunnel.hang_up()


def test_it_shows_as_the_connection_for_which_it_stands_and_is_counted_there(world: LinkWorld) -> None:
    root, backup = root_and_backup(world)
    node = world.node(root)
    tunnel, trunk = RawTunnel(world, backup, root), RawTunnel(world, backup, root, user="", purpose="trunk")
    assert tunnel.end.let_in and trunk.end.let_in
    assert [(view.name, view.user) for view in node.views.connections()] == [(PEER, "guest")]
    assert node.views.node().connections == 0
    assert node.broker.tallies["guest"].connection_count == 0
    tunnel.hang_up()
    trunk.hang_up()
    assert list(node.views.connections()) == []
    assert not node.broker.clients


def test_who_is_not_the_root_says_so(world: LinkWorld) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, root, backup)
    assert not tunnel.end.let_in
    assert tunnel.refused is not None and f"the root is {root}" in tunnel.refused.reason
    assert not tunnel.refused.lasting


def test_a_broker_reaches_itself(world: LinkWorld) -> None:
    root, _ = root_and_backup(world)
    tunnel = RawTunnel(world, root, root)
    assert tunnel.end.let_in
    assert list(world.node(root).views.connections()) == [], "its client is in the list itself"
    tunnel.hang_up()


@pytest.mark.parametrize("facts", [{"user": "nobody"}, {"vhost": "/nowhere"}, {"purpose": "trunk", "vhost": "no"}])
def test_nobody_is_vouched_for_who_is_not_known(world: LinkWorld, facts: dict[str, str]) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, backup, root, **facts)
    assert not tunnel.end.let_in
    assert tunnel.refused is not None


def test_what_ends_the_client_is_told_from_what_ends_the_way_to_the_root(world: LinkWorld) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, backup, root)
    assert world.node(root).close_connection(PEER, "no reason")
    world.run(20)
    (closed,) = tunnel.heard
    assert closed == ClosedByRoot(320, "CONNECTION_FORCED - no reason", 10, 50)
    assert not world.node(root).broker.clients
