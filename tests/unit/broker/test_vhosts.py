"""Vhosts: each a world of its own, and nothing of it is left when it goes."""

import pytest

from pandomq import limits, methods
from pandomq.broker.administration import administration_views as views
from pandomq.broker.log.commands import (
    DeletePermissions,
    DeleteVhost,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutVhost,
)
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import Int32
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.durable_view import durable_view

PERSISTENT = Properties(delivery_mode=2)


def world_with(name: str = "v") -> World:
    world = World()
    assert world.administer(PutVhost(name), PutPermissions(name, "guest", ".*", ".*", ".*")) is None
    return world


def busy(world: World) -> Peer:
    """Somebody who uses everything that a vhost has."""
    peer = world.peer(vhost="v")
    peer.declare("q", durable=True)
    peer.declare("other", durable=True, arguments={"x-dead-letter-exchange": "x", "x-expires": 1000})
    peer.declare("mine", exclusive=True)
    peer.declare("fleeting", auto_delete=True)
    wait = {"x-delayed-type": "direct"}
    delayed = methods.ExchangeDeclare("later", "x-delayed-message", durable=True, arguments=wait)
    for method in (methods.ExchangeDeclare("x", "topic", auto_delete=True), delayed):
        peer.call(method, expect=methods.ExchangeDeclareOk)
    peer.call(methods.QueueBind("q", "later", "k"), expect=methods.QueueBindOk)
    peer.call(methods.QueueBind("mine", "x", "#"), expect=methods.QueueBindOk)
    peer.consume("amq.rabbitmq.reply-to", "r", no_ack=True)
    peer.consume("q", "q")
    peer.consume("fleeting", "f")
    for number in range(3):
        peer.publish("", "q", bytes([number]), PERSISTENT)
        peer.publish("", "other", bytes([number]), PERSISTENT)
        peer.publish("later", "k", b"", Properties(delivery_mode=2, headers={"x-delay": Int32(10)}))
    peer.send(methods.ChannelOpen(), methods.TxSelect(), channel=2).publish("", "q", channel=2)
    assert len(peer.bodies()) == 3
    return peer


def test_a_new_vhost_has_the_usual_exchanges_and_no_permissions() -> None:
    world = World()
    assert world.administer(PutVhost("v", "for tests", ("a", "b"))) is None
    home, new = (world.broker.state.vhosts[name].router.exchanges for name in ("/", "v"))
    assert list(home) == list(new)
    with pytest.raises(ConnectionFault, match="530 NOT_ALLOWED - access to vhost 'v' refused for user 'guest'"):
        world.connect(vhost="v")
    assert list(views.vhosts(world.broker))[1] == views.VhostView("v", "for tests", ("a", "b"), {}, 0, 0)


def test_an_unknown_vhost() -> None:
    with pytest.raises(ConnectionFault, match="530 NOT_ALLOWED - vhost nowhere not found"):
        World().connect(vhost="nowhere")


def test_vhosts_do_not_know_of_each_other() -> None:
    world = world_with()
    here, there = world.peer(), world.peer(vhost="v")
    here.declare("q")
    assert there.refused(methods.QueueDeclare("q", passive=True)).reply_text == "NOT_FOUND - no queue 'q' in vhost 'v'"
    there.declare("q")
    there.publish("", "q")
    assert (here.counts(), there.counts()) == ((0, 0), (1, 0))


def test_a_second_put_changes_its_own_fields_and_nothing_else() -> None:
    world = world_with()
    world.peer(vhost="v").declare("q")
    assert world.administer(PutLimits("vhost", "v", {"max-queues": 5})) is None
    assert world.administer(PutVhost("v", "new")) is None
    (view,) = (view for view in views.vhosts(world.broker) if view.name == "v")
    assert view == views.VhostView("v", "new", (), {"max-queues": 5}, 1, 1)


def test_deleting_a_vhost_under_use() -> None:
    world = world_with()
    assert (
        world.administer(
            PutPolicy("v", "p", ".*", "all", 0, b'{"max-length": 100}'),
            PutTopicPermissions("v", "guest", "x", ".*", ".*"),
        )
        is None
    )
    before = durable_counts(world)
    peer, bystander = busy(world), world.peer()
    bystander.declare("q", durable=True)
    assert world.administer(DeleteVhost("v")) is None
    assert str(peer.fault()) == "320 CONNECTION_FORCED - vhost 'v' is deleted"
    # Methods that it sends before it receives this have no effect.
    peer.send(methods.QueueDeclare("late", durable=True)).publish("", "q", b"", PERSISTENT)
    assert bystander.counts() == (0, 0)
    assert list(world.broker.state.vhosts) == ["/"]
    assert durable_counts(world) == before + 1, "the bystander's queue"
    assert not list(views.topic_permissions(world.broker))
    assert not list(views.policies(world.broker, operator=False))
    peer.leave()
    world.pass_time(5000)
    bystander.publish("", "q")
    assert bystander.counts() == (1, 0)
    assert world.broker.engine.held_messages == 1
    assert world.broker.consumer_count == 0
    bystander.leave()
    assert durable_view(world.replayed().broker) == durable_view(world.broker)


def durable_counts(world: World) -> int:
    return len(world.broker.state.logged)


def test_a_vhost_that_comes_back_is_empty() -> None:
    world = world_with()
    busy(world).leave()
    assert world.administer(DeleteVhost("v"), PutVhost("v"), PutPermissions("v", "guest", ".*", ".*", ".*")) is None
    peer = world.peer(vhost="v")
    assert peer.refused(methods.QueueDeclare("q", passive=True)).reply_code == 404
    peer.declare("q", durable=True)
    peer.publish("", "q", b"new", PERSISTENT)
    peer.leave()
    assert durable_view(world.replayed().broker) == durable_view(world.broker)


def test_even_the_first_vhost_may_go() -> None:
    world = World()
    peer = world.peer()
    assert world.administer(DeleteVhost("/")) is None
    assert peer.client in world.closed
    assert not world.broker.state.vhosts


def test_losing_permissions_keeps_the_connection_and_takes_the_rights() -> None:
    world = world_with()
    peer = world.peer(vhost="v")
    peer.declare("q")
    peer.publish("", "q")
    assert world.administer(DeletePermissions("v", "guest")) is None
    peer.publish("", "q")
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose) and close.reply_code == 403
    assert peer.client not in world.closed
    with pytest.raises(ConnectionFault):
        world.connect(vhost="v")
    fault = world.administer(DeletePermissions("v", "guest"))
    assert fault is not None and fault.reply_code == 404


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (PutVhost(""), 406, "the vhost name is empty"),
        (PutVhost("v" * 256), 406, "the vhost name has 256 bytes: at most 255 are allowed"),
        (PutVhost("v", "d" * 5000), 406, "the description has 5000 bytes: at most 4096 are allowed"),
        (DeleteVhost("nowhere"), 404, "no vhost 'nowhere'"),
        (PutPermissions("nowhere", "guest", "", "", ""), 404, "no vhost 'nowhere'"),
        (PutPolicy("nowhere", "p", "", "all", 0, b"{}"), 404, "no vhost 'nowhere'"),
        (PutLimits("vhost", "nowhere", {}), 404, "no vhost 'nowhere'"),
    ],
)
def test_wrong_commands_about_vhosts_are_refused(command: PutVhost, code: int, text: str) -> None:
    fault = World().administer(command)
    assert fault is not None
    assert (fault.reply_code, fault.reply_text) == (code, text)


@pytest.mark.parametrize("name", ["ä" * 127, "a\0b", "a/b", "'x'", "\U0001f407", "{vhost}"])
def test_strange_names_are_names(name: str) -> None:
    world = world_with(name)
    peer = world.peer(vhost=name)
    peer.declare("q")
    assert world.administer(DeleteVhost(name)) is None
    assert peer.fault().reply_text.startswith(f"CONNECTION_FORCED - vhost '{name[:100]}")


def test_the_number_of_vhosts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VHOSTS_MAX", 2)
    world = world_with()
    fault = world.administer(PutVhost("w"))
    assert fault is not None and fault.reply_text == "the maximum number of vhosts (2) is reached: delete one first"
    assert world.administer(PutVhost("v", "again")) is None
