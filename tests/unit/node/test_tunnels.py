"""The root's end of tunnels: who is let in, as whom, and what is seen of it."""

from __future__ import annotations

import pytest

from pandomq.cluster.introduction import IntroductionStage
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
    assert tunnel.end.stage is IntroductionStage.OPEN and tunnel.end.let_in
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


def test_a_tunnel_is_shown_as_its_connection_and_counted_at_the_other_broker(world: LinkWorld) -> None:
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


def test_a_broker_that_is_not_the_root_refuses_a_tunnel_and_names_the_root(world: LinkWorld) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, root, backup)
    assert not tunnel.end.let_in
    (closed,) = tunnel.heard
    assert isinstance(closed, ClosedByRoot) and closed.reply_code == 320
    assert f"the root is {root}" in closed.reply_text


def test_a_broker_reaches_itself(world: LinkWorld) -> None:
    root, _ = root_and_backup(world)
    tunnel = RawTunnel(world, root, root)
    assert tunnel.end.let_in
    assert list(world.node(root).views.connections()) == [], "its client is in the list itself"
    tunnel.hang_up()


@pytest.mark.parametrize("facts", [{"user": "nobody"}, {"vhost": "/nowhere"}, {"purpose": "trunk", "vhost": "no"}])
def test_a_tunnel_for_an_unknown_user_or_vhost_is_refused(world: LinkWorld, facts: dict[str, str]) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, backup, root, **facts)
    assert not tunnel.end.let_in
    (closed,) = tunnel.heard
    assert isinstance(closed, ClosedByRoot) and closed.reply_code == 530
    assert tunnel.end.stage is IntroductionStage.OVER and tunnel.refused is None


def test_the_close_of_a_client_by_the_root_differs_from_a_lost_tunnel(world: LinkWorld) -> None:
    root, backup = root_and_backup(world)
    tunnel = RawTunnel(world, backup, root)
    assert world.node(root).close_connection(PEER, "no reason")
    world.run(20)
    (closed,) = tunnel.heard
    assert closed == ClosedByRoot(320, "CONNECTION_FORCED - no reason", 10, 50)
    assert not world.node(root).broker.clients
