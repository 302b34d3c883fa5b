"""Clients of brokers that are not the root, in a cluster whose brokers proxy: the node's part of it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from pandomq.broker.administration.passwords import SCRYPT, hash_password
from pandomq.broker.log.commands import AdministrativeCommand, DeletePermissions, PutPermissions, PutUser
from pandomq.errors import Fault
from pandomq.kernel import DeliveryRun, SettleRun
from pandomq.limits import HANDSHAKE_MS_MAX
from pandomq.methods import (
    BasicConsume,
    BasicConsumeOk,
    ChannelOpenOk,
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


def make_world(kind: type[LinkWorld] = LinkWorld) -> LinkWorld:
    world = kind(3, n1=PROXY, n2=PROXY, n3=PROXY)
    world.until(lambda: world.root is not None and world.all_linked())
    world.until(lambda: all(world.node(name).service_state.takes_clients for name in world.machines))
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
def test_a_broker_that_is_cut_off_serves_no_client_and_closes_it_in_the_end() -> None:
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
    assert f"no root was elected for {ROOT_WAIT_MS} ms" in closed.method.reply_text
    world.until(lambda: not world.node(name).service_state.takes_clients)


@pytest.mark.proves("R16")
def test_messages_for_clients_of_a_broker_that_lost_power_return_when_it_is_linked_again() -> None:
    """The root has nothing to send on the tunnels of the earlier life, and so nothing ends them but a heartbeat."""
    world = make_world()
    root, (name, _) = world.root, backups(world)
    assert root is not None
    lost, client = RawClient(world, name), RawClient(world, root)
    client.say(SHARED)
    assert methods(lost.say(BasicConsume("q", "lost"))) == [BasicConsumeOk("lost")]
    world.lose_power(name)
    client.publish("", "q", b"hello")
    assert methods(client.say(BasicConsume("q", "tag"))) == [BasicConsumeOk("tag")]
    assert not client.listen(6_000) and not world.is_linked(root, name)
    world.start(name)
    world.until(lambda: world.is_linked(root, name))
    run = hears(client, world, lambda item: isinstance(item, DeliveryRun), limit_ms=50)
    assert isinstance(run, DeliveryRun) and run[0][3], "it is redelivered"


@pytest.mark.proves("R16")
def test_a_declared_queue_is_known_to_all_brokers_with_clients() -> None:
    world = make_world()
    one, other = (RawClient(world, name) for name in backups(world))
    for number in range(20):
        name = f"q{number}"
        one.write_later(QueueDeclare(name, durable=True))
        hears(one, world, lambda item: isinstance(item, MethodInput))
        assert methods(other.say(QueueDeclare(name, passive=True)))[0] == QueueDeclareOk(name, 0, 0)


def administer(world: LinkWorld, *commands: AdministrativeCommand) -> None:
    """On the root; returns when it has answered."""
    assert world.root is not None
    answers: list[Fault | None] = []
    for command in commands:
        world.node(world.root).administer(command, answers.append)
    world.until(lambda: len(answers) == len(commands))
    assert answers == [None] * len(commands)


def cut_off(world: LinkWorld, name: str) -> None:
    for other in world.machines:
        if other != name:
            world.clogged.add(frozenset((name, other)))
    world.run(500)


def hears_verdict(client: RawClient, world: LinkWorld) -> Method:
    """Whether the broker lets it in."""

    def is_it(item: Heard) -> bool:
        return isinstance(item, MethodInput) and isinstance(item.method, ChannelOpenOk | ConnectionClose)

    heard = hears(client, world, is_it, 2 * ROOT_WAIT_MS)
    assert isinstance(heard, MethodInput)
    return heard.method


@pytest.mark.proves("R16")
def test_a_client_is_let_in_when_its_broker_knows_what_was_granted() -> None:
    world = make_world()
    name, _ = backups(world)
    cut_off(world, name)
    password_hash = hash_password(b"ann", bytes(16), 1)
    administer(world, PutUser("ann", password_hash, SCRYPT, ()), PutPermissions("/", "ann", ".*", ".*", ".*"))
    client = RawClient(world, name, "ann")
    assert client.open and not any(isinstance(method, ConnectionClose) for method in methods(client.heard))
    world.clogged.clear()
    assert hears_verdict(client, world) == ChannelOpenOk()


@pytest.mark.proves("R16")
def test_a_client_is_not_let_in_by_a_broker_that_does_not_know_what_was_revoked() -> None:
    world = make_world()
    name, _ = backups(world)
    password_hash = hash_password(b"ann", bytes(16), 1)
    administer(world, PutUser("ann", password_hash, SCRYPT, ()), PutPermissions("/", "ann", ".*", ".*", ".*"))
    world.run(100)
    cut_off(world, name)
    administer(world, DeletePermissions("/", "ann"))
    client = RawClient(world, name, "ann")
    assert not client.heard
    world.clogged.clear()
    closed = hears_verdict(client, world)
    assert isinstance(closed, ConnectionClose) and closed.reply_code == 530


@pytest.mark.proves("R16")
@pytest.mark.parametrize("handshake_ms_max", [HANDSHAKE_MS_MAX, ROOT_WAIT_MS // 3])
def test_a_client_that_is_not_let_in_is_closed_after_a_time_for_lack_of_a_root(handshake_ms_max: int) -> None:
    """This holds even if the handshake has less time than the broker takes to look for a root."""
    world = make_world()
    name, _ = backups(world)
    settings = msgspec.structs.replace(world.machines[name].settings, handshake_ms_max=handshake_ms_max)
    world.node(name).change_settings(settings)
    cut_off(world, name)
    client = RawClient(world, name)
    closed = hears_verdict(client, world)
    assert isinstance(closed, ConnectionClose) and closed.reply_code == 320


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
    service = world.node(name)._front_service
    assert service is not None and not service.front.clients and not len(service.tunnels)


def test_a_client_is_served_soon_after_a_new_root_begins_to_serve_however_long_it_was_refused_before() -> None:
    """The front asks seldom after many refusals. Its lease shows that the root serves now."""
    world = make_world()
    first = world.root
    assert first is not None
    clients = {name: RawClient(world, name) for name in backups(world)}
    for client in clients.values():
        client.say(SHARED)
    world.kill(first)
    world.until(lambda: any(world.node(name).peers.life.took_over for name in clients))
    # The new root cannot commit its first entry without the other disk, and refuses tunnels for so long.
    other = next(name for name in clients if not world.node(name).peers.life.took_over)
    world.machines[other].disk.stall(world.now_ms, 1_300)
    for client in clients.values():
        client.write_later(SHARED)
    world.until(lambda: world.root in clients)
    for client in clients.values():
        hears(client, world, lambda item: isinstance(item, MethodInput), 200)
