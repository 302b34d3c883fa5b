"""Limits at, below and above what they allow, each with its error."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.administration import administration_views as views
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.log.commands import AdministrativeCommand, PutLimits, PutPermissions, PutVhost
from pandomq.errors import ConnectionFault
from tests.unit.broker.conversation import World


def vhost_limits(**values: int | None) -> AdministrativeCommand:
    return PutLimits("vhost", "/", {name.replace("_", "-"): value for name, value in values.items()})


def user_limits(user: str = "guest", **values: int | None) -> AdministrativeCommand:
    return PutLimits("user", user, {name.replace("_", "-"): value for name, value in values.items()})


VHOST_FULL = "530 NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (2) is reached"
USER_FULL = "530 NOT_ALLOWED - connection refused for user 'guest': user connection limit (2) is reached"


@pytest.mark.parametrize(
    ("limits", "command", "text"),
    [
        (BrokerLimits(connections_per_vhost_max=2), None, VHOST_FULL),
        (BrokerLimits(), vhost_limits(max_connections=2), VHOST_FULL),
        (BrokerLimits(connections_per_vhost_max=2), vhost_limits(max_connections=9), VHOST_FULL),
        (BrokerLimits(connections_per_vhost_max=9), vhost_limits(max_connections=2), VHOST_FULL),
        (BrokerLimits(connections_per_user_max=2), None, USER_FULL),
        (BrokerLimits(), user_limits(max_connections=2), USER_FULL),
    ],
)
def test_connections(limits: BrokerLimits, command: AdministrativeCommand | None, text: str) -> None:
    world = World(limits=limits)
    if command is not None:
        assert world.administer(command) is None
    first = world.connect()
    world.connect()
    for _ in range(2):
        with pytest.raises(ConnectionFault) as caught:
            world.connect()
        assert str(caught.value) == text
    first.leave()
    world.connect()


def test_connections_are_counted_by_user_and_by_vhost() -> None:
    world = World(limits=BrokerLimits(connections_per_user_max=1, connections_per_vhost_max=2))
    assert world.administer(PutVhost("v"), PutPermissions("v", "guest", "", "", "")) is None
    world.admit("ann")
    world.admit("bob")
    world.connect()
    world.connect(user="ann")
    with pytest.raises(ConnectionFault, match="access to vhost '/' refused for user 'bob': connection limit"):
        world.connect(user="bob")
    with pytest.raises(ConnectionFault, match="user connection limit"):
        world.connect(vhost="v")


def test_no_connection_at_all() -> None:
    world = World()
    assert world.administer(vhost_limits(max_connections=0)) is None
    with pytest.raises(ConnectionFault, match=r"connection limit \(0\) is reached"):
        world.connect()
    assert world.administer(vhost_limits(max_connections=-1)) is None
    world.connect()


def test_a_connection_from_inside_the_broker_is_not_counted() -> None:
    world = World(limits=BrokerLimits(connections_per_vhost_max=1))
    world.connect()
    inside = world.broker.connect(
        user="guest", vhost="/", peer="", client_properties={}, frame_max=4096, channel_max=1, now_ms=0, counted=False
    )
    world.broker.disconnect(inside, 0)
    world.run([])
    assert world.broker.state.vhosts["/"].connection_count == world.broker.tallies["guest"].connection_count == 1


def test_channels_of_a_user() -> None:
    world = World()
    assert world.administer(user_limits(max_channels=2)) is None
    one, other = world.peer(), world.peer()
    one.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    one.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=7)
    other.send(methods.ChannelOpen(), channel=2)
    fault = other.fault()
    assert str(fault) == (
        "530 NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed user limit of 2"
    )
    assert (fault.class_id, fault.method_id) == (0, 0)
    other.leave()
    assert world.broker.tallies["guest"].channel_count == 1
    # A channel that the broker closed counts until the client knows.
    one.send(methods.QueueDeclare("missing", passive=True), channel=7)
    assert world.broker.tallies["guest"].channel_count == 1
    one.send(methods.ChannelCloseOk(), channel=7)
    assert world.broker.tallies["guest"].channel_count == 0


def test_queues_of_a_vhost() -> None:
    world = World()
    assert world.administer(vhost_limits(max_queues=2)) is None
    peer = world.peer()
    peer.declare("a")
    peer.declare("mine", exclusive=True)
    for exclusive in (False, True):
        close = peer.refused(methods.QueueDeclare("c", exclusive=exclusive))
        assert (close.reply_code, close.reply_text) == (
            406,
            "PRECONDITION_FAILED - cannot declare queue 'c': queue limit in vhost '/' (2) is reached",
        )
    peer.declare("a")
    peer.call(methods.QueueDelete("a"), expect=methods.QueueDeleteOk)
    peer.declare("c")
    assert world.administer(vhost_limits(max_queues=None)) is None
    peer.declare("d")


def test_queues_in_all() -> None:
    world = World(limits=BrokerLimits(queues_max=2))
    assert world.administer(PutVhost("v"), PutPermissions("v", "guest", ".*", ".*", ".*")) is None
    world.peer().declare("a")
    there = world.peer(vhost="v")
    there.declare("b")
    close = there.refused(methods.QueueDeclare("c"))
    assert close.reply_text == ("PRECONDITION_FAILED - cannot declare queue 'c': queue limit in cluster (2) is reached")


def test_bindings() -> None:
    world = World(limits=BrokerLimits(bindings_max=2))
    peer = world.peer()
    peer.declare("q")
    peer.declare("mine", exclusive=True)
    peer.call(methods.QueueBind("q", "amq.direct", "a"), expect=methods.QueueBindOk)
    peer.call(methods.ExchangeBind("amq.fanout", "amq.direct", "a"), expect=methods.ExchangeBindOk)
    refused: tuple[methods.Method, ...] = (
        methods.QueueBind("q", "amq.direct", "b"),
        methods.QueueBind("mine", "amq.direct", "b"),
        methods.ExchangeBind("amq.fanout", "amq.direct", "b"),
    )
    for method in refused:
        close = peer.refused(method)
        assert close.reply_code == 406
        assert close.reply_text.endswith("to exchange 'amq.direct': binding limit (2) is reached")
    peer.call(methods.QueueBind("q", "amq.direct", "a"), expect=methods.QueueBindOk)
    peer.call(methods.QueueUnbind("q", "amq.direct", "a"), expect=methods.QueueUnbindOk)
    peer.call(methods.QueueBind("mine", "amq.direct", "b"), expect=methods.QueueBindOk)
    peer.leave()
    assert world.broker.state.vhosts["/"].router.binding_count == 1


def test_consumers_of_a_channel() -> None:
    world = World(limits=BrokerLimits(consumers_per_channel_max=1))
    peer = world.peer()
    peer.declare("q")
    peer.consume("q", "a")
    peer.send(methods.BasicConsume("q", "b"))
    assert str(peer.fault()) == "530 NOT_ALLOWED - reached maximum (1) of consumers per channel"


@pytest.mark.parametrize("limits", [BrokerLimits(consumers_per_queue_max=2), BrokerLimits(consumers_max=2)])
def test_consumers_of_a_queue_and_in_all(limits: BrokerLimits) -> None:
    world = World(limits=limits)
    one, other = world.peer(), world.peer()
    one.declare("q")
    one.consume("q", "a")
    other.consume("q", "b")
    one.hear()
    other.hear()
    close = one.refused(methods.BasicConsume("q", "c"))
    assert (close.reply_code, close.reply_text) == (
        406,
        "PRECONDITION_FAILED - cannot consume from queue 'q' in vhost '/': consumer limit (2) is reached",
    )
    # The channel's own consumer went with it.
    assert world.broker.consumer_count == 1
    one.call(methods.BasicConsume("q", "c"), expect=methods.BasicConsumeOk)


def test_consumers_are_counted_however_they_end() -> None:
    world = World()
    peer = world.peer()
    peer.declare("a")
    peer.declare("b")
    for tag, queue in (("1", "a"), ("2", "a"), ("3", "b"), ("4", "b")):
        peer.consume(queue, tag)
    peer.consume("amq.rabbitmq.reply-to", "5", no_ack=True)
    assert world.broker.consumer_count == 5
    peer.send(methods.BasicCancel("1"))
    assert world.broker.consumer_count == 4
    peer.send(methods.QueueDelete("a"))
    assert world.broker.consumer_count == 3
    peer.send(methods.ChannelClose(200, "", 0, 0))
    assert world.broker.consumer_count == 0
    peer.send(methods.ChannelOpen()).consume("b", "6")
    peer.leave()
    assert world.broker.consumer_count == 0


def test_limits_merge() -> None:
    world = World()
    assert world.administer(vhost_limits(max_queues=5), vhost_limits(max_connections=6)) is None
    (view,) = views.vhosts(world.broker)
    assert view.limits == {"max-queues": 5, "max-connections": 6}
    assert world.administer(vhost_limits(max_queues=None)) is None
    (view,) = views.vhosts(world.broker)
    assert view.limits == {"max-connections": 6}
    assert world.replayed().broker.state.vhosts["/"].limits == {"max-connections": 6}


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (
            PutLimits("vhost", "/", {"max-channels": 1}),
            'Validation failed\n\nUnrecognised terms [{<<"max-channels">>,1}] in limits\n',
        ),
        (
            PutLimits("user", "guest", {"max-queues": 1}),
            'Validation failed\n\nUnrecognised terms [{<<"max-queues">>,1}] in user-limits\n',
        ),
        (
            PutLimits("vhost", "/", {"max-queues": "x"}),  # type: ignore[dict-item]
            'Validation failed\n\nmax-queues should be a number, actually was <<"x">>\n',
        ),
        (
            PutLimits("vhost", "/", {"max-queues": True}),
            "Validation failed\n\nmax-queues should be a number, actually was true\n",
        ),
        (PutLimits("vhost", "/", {"max-queues": 2**70}), None),
    ],
)
def test_malformed_limits_are_refused(command: AdministrativeCommand, text: str | None) -> None:
    fault = World().administer(command)
    assert fault is not None and fault.reply_code == 406
    assert text in (None, fault.reply_text)
