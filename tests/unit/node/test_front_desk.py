"""Clients of brokers that are not the root, in a cluster whose brokers proxy: the node's part of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pandomq.kernel import DeliveryRun, SettleRun
from pandomq.methods import (
    BasicConsume,
    BasicConsumeOk,
    ConfirmSelect,
    ConnectionClose,
    Method,
    MethodInput,
    QueueDeclare,
    QueueDeclareOk,
)
from tests.unit.node.link_world import LinkWorld
from tests.unit.node.raw_client import Heard, RawClient

ROOT_WAIT_MS = 3000
PROXY = {"access": "proxy", "root_wait_ms": ROOT_WAIT_MS}
SHARED = QueueDeclare("q", durable=True)


def make_world() -> LinkWorld:
    world = LinkWorld(3, n1=PROXY, n2=PROXY, n3=PROXY)
    world.until(lambda: world.root is not None and world.all_linked())
    world.until(lambda: all(world.node(name).office.takes_clients for name in world.machines))
    return world


def backups(world: LinkWorld) -> list[str]:
    return [name for name in world.machines if name != world.root]


def methods(heard: list[Heard]) -> list[Method]:
    return [item.method for item in heard if isinstance(item, MethodInput)]


def hears(client: RawClient, world: LinkWorld, is_it: Callable[[Heard], bool], limit_ms: int = 20_000) -> Heard:
    world.until(lambda: any(is_it(item) for item in client.heard), limit_ms)
    return next(item for item in client.heard if is_it(item))


@pytest.mark.proves("R12")
def test_a_client_of_a_backup_is_served_in_the_root_s_name() -> None:
    world = make_world()
    assert world.root is not None
    one, other = (RawClient(world, name) for name in backups(world))
    assert [type(method) for method in methods(one.say(SHARED))] == [QueueDeclareOk]
    assert "q" in world.node(world.root).broker.state.vhosts["/"].queues
    assert methods(other.say(BasicConsume("q", "tag", no_ack=True))) == [BasicConsumeOk("tag")]
    one.say(ConfirmSelect(False))
    assert any(isinstance(item, SettleRun) for item in one.publish("", "q", b"hello"))
    run = hears(other, world, lambda item: isinstance(item, DeliveryRun))
    assert isinstance(run, DeliveryRun) and bytes(run[0][4].body) == b"hello"


@pytest.mark.proves("R16")
def test_who_is_cut_off_serves_nobody_and_says_so_in_the_end() -> None:
    world = make_world()
    root, (name, _) = world.root, backups(world)
    assert root is not None
    client = RawClient(world, name)
    client.say(SHARED)
    for other in world.machines:
        if other != name:
            world.clogged.add(frozenset((name, other)))
    world.run(2000)
    assert not client.say(QueueDeclare("q", passive=True)), "what it knows may be out of date"
    closed = hears(client, world, lambda item: isinstance(item, MethodInput))
    assert isinstance(closed, MethodInput) and isinstance(closed.method, ConnectionClose)
    assert closed.method.reply_code == 320
    assert f"no root for {ROOT_WAIT_MS} ms" in closed.method.reply_text
    world.until(lambda: not world.node(name).office.takes_clients)


@pytest.mark.proves("R16")
def test_what_was_declared_is_known_wherever_clients_are() -> None:
    world = make_world()
    one, other = (RawClient(world, name) for name in backups(world))
    for number in range(20):
        name = f"q{number}"
        one.write_later(QueueDeclare(name, durable=True))
        hears(one, world, lambda item: isinstance(item, MethodInput))
        assert methods(other.say(QueueDeclare(name, passive=True)))[0] == QueueDeclareOk(name, 0, 0)


def test_an_administrator_ends_a_connection_wherever_it_is() -> None:
    world = make_world()
    assert world.root is not None
    (name, _) = backups(world)
    client = RawClient(world, name)
    client.say(SHARED)
    (view,) = world.node(world.root).views.connections()
    assert view.name == next(world.node(name).views.connections()).name
    client.heard.clear()
    assert world.node(world.root).close_connection(view.name, "enough")
    closed = hears(client, world, lambda item: isinstance(item, MethodInput))
    assert isinstance(closed, MethodInput)
    assert closed.method == ConnectionClose(320, "CONNECTION_FORCED - enough", 0, 0)


def test_nothing_is_left_of_a_client_that_goes() -> None:
    world = make_world()
    assert world.root is not None
    (name, _) = backups(world)
    client = RawClient(world, name)
    client.say(SHARED)
    assert len(world.node(world.root).broker.clients) == 1
    client.hang_up()
    world.run(200)
    assert not world.node(world.root).broker.clients
    desk = world.node(name)._front_desk
    assert desk is not None and not desk.front.clients and not len(desk.tunnels)
