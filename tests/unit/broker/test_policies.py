"""Policies take effect at once on queues and exchanges in use, and end as they began."""

from __future__ import annotations

from pandomq import methods
from pandomq.broker.administration import administration_views as views
from pandomq.broker.views import exchanges, queues
from pandomq.properties import Properties
from tests.unit.broker.conversation import World
from tests.unit.broker.policy_scene import follow, policies_of, policy, publish, scene, settings_of, withdraw

# The effect on a queue in use.


def test_length() -> None:
    world, peer = scene()
    publish(peer, 5)
    follow(world, {"max-length": 2})
    assert peer.counts() == (2, 0)
    publish(peer, 3)
    assert peer.counts() == (2, 0)
    withdraw(world)
    publish(peer, 3)
    assert peer.counts() == (5, 0)


def test_length_in_bytes() -> None:
    world, peer = scene()
    publish(peer, 5)
    follow(world, {"max-length-bytes": 3})
    assert peer.counts() == (3, 0)


def test_overflow() -> None:
    world, peer = scene()
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    follow(world, {"max-length": 1, "overflow": "reject-publish"})
    for expected in (methods.BasicAck, methods.BasicNack):
        publish(peer, 1)
        assert [type(method) for method in peer.heard()] == [expected]
    withdraw(world)
    publish(peer, 1)
    assert [type(method) for method in peer.heard()] == [methods.BasicAck]


def test_time_to_live_concerns_messages_from_then_on() -> None:
    world, peer = scene()
    publish(peer, 1)
    follow(world, {"message-ttl": 100})
    publish(peer, 2)
    world.pass_time(50)
    withdraw(world)
    publish(peer, 1)
    assert peer.counts() == (4, 0)
    # Those that got a time keep it, as in RabbitMQ. They are behind one that has none.
    assert peer.get() is not None
    world.pass_time(100)
    assert peer.counts() == (1, 0)


def test_a_policy_sets_the_dead_letter_exchange() -> None:
    world, peer = scene()
    peer.declare("dead")
    publish(peer, 1)
    follow(world, {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
    got = peer.get(no_ack=False)
    assert got is not None and isinstance(got.method, methods.BasicGetOk)
    peer.send(methods.BasicReject(got.method.delivery_tag, False))
    assert peer.counts("dead") == (1, 0)
    withdraw(world)
    publish(peer, 1)
    got = peer.get(no_ack=False)
    assert got is not None and isinstance(got.method, methods.BasicGetOk)
    peer.send(methods.BasicReject(got.method.delivery_tag, False))
    assert peer.counts("dead") == (1, 0)


def test_delivery_limit() -> None:
    world, peer = scene()
    publish(peer, 1)
    follow(world, {"delivery-limit": 1}, apply_to="classic_queues")
    for left in (1, 0):
        got = peer.get(no_ack=False)
        assert got is not None and isinstance(got.method, methods.BasicGetOk)
        peer.send(methods.BasicReject(got.method.delivery_tag, True))
        assert peer.counts() == (left, 0)


def test_expiry_of_a_queue_begins_with_the_policy() -> None:
    world, peer = scene()
    world.pass_time(10_000)
    follow(world, {"expires": 1000})
    world.pass_time(900)
    assert "q" in world.broker.state.vhosts["/"].queues
    world.pass_time(200)
    assert "q" not in world.broker.state.vhosts["/"].queues
    peer.declare("q2")
    world.pass_time(1100)
    assert "q2" not in world.broker.state.vhosts["/"].queues


def test_expiry_of_a_queue_ends_with_the_policy() -> None:
    world, peer = scene()
    follow(world, {"expires": 1000})
    world.pass_time(500)
    withdraw(world)
    world.pass_time(10_000)
    peer.declare("q", passive=True)
    follow(world, {"expires": 5000})
    follow(world, {"expires": 100})
    follow(world, {"expires": 2000})
    world.pass_time(1900)
    peer.declare("q", passive=True)
    world.pass_time(2100)
    assert "q" not in world.broker.state.vhosts["/"].queues


def test_changing_a_policy_often_leaves_nothing_behind() -> None:
    world, _ = scene()
    for number in range(5000):
        world.broker.change(policy({"expires": 10_000_000 + number}))
    assert len(world.broker.timers) < 2100


def test_consumer_timeout() -> None:
    world, peer = scene()
    publish(peer, 1)
    peer.consume()
    peer.hear()
    follow(world, {"consumer-timeout": 5000})
    world.pass_time(4000)
    assert peer.heard() == []
    world.pass_time(3000)
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose) and "Timeout value used: 5000 ms" in close.reply_text


def test_a_consumer_timeout_that_was_withdrawn() -> None:
    world, peer = scene()
    publish(peer, 1)
    peer.consume()
    peer.hear()
    follow(world, {"consumer-timeout": 5000})
    withdraw(world)
    world.pass_time(10_000)
    assert peer.heard() == []


def test_private_queues_follow_policies() -> None:
    world, peer = scene()
    follow(world, {"max-length": 1, "expires": 1000}, pattern="^(q2|amq\\.gen)")
    peer.declare("q2", exclusive=True)
    name = peer.declare("", exclusive=True).queue
    for _ in range(2):
        peer.publish("", "q2").publish("", name)
    assert (peer.counts("q2"), peer.counts(name)) == ((1, 0), (1, 0))
    world.pass_time(1100)
    assert set(world.broker.state.vhosts["/"].queues) == {"q"}


def test_replication_is_kept() -> None:
    world, _ = scene()
    follow(world, {"replicate": "messages"})
    assert settings_of(world).replicate == "messages"
    withdraw(world)
    assert settings_of(world).replicate is None


def test_messages_of_a_live_queue_survive_any_change() -> None:
    world, peer = scene(durable=True, arguments={"x-max-priority": 3})
    publish(peer, 4, delivery_mode=2, priority=2)
    for definition in (
        {"max-length": 9},
        {"message-ttl": 10**9},
        {"overflow": "reject-publish"},
        {"queue-mode": "lazy"},
    ):
        follow(world, definition)
    peer.publish("", "q", b"first", Properties(priority=3))
    got = peer.get()
    assert got is not None and got.body == b"first"
    assert peer.counts() == (4, 0)


# Exchanges.


def test_alternate_exchange() -> None:
    world, peer = scene()
    peer.call(methods.ExchangeDeclare("x", "direct"), expect=methods.ExchangeDeclareOk)
    peer.call(methods.QueueBind("q", "amq.fanout"), expect=methods.QueueBindOk)
    peer.publish("x", "k")
    assert peer.counts() == (0, 0)
    follow(world, {"alternate-exchange": "amq.fanout"}, pattern="^x$", apply_to="exchanges")
    peer.publish("x", "k")
    assert peer.counts() == (1, 0)
    (view,) = (view for view in exchanges(world.broker) if view.name == "x")
    assert view.policy == "p"
    withdraw(world)
    peer.publish("x", "k")
    assert peer.counts() == (1, 0)


def test_an_exchange_declared_later_follows_as_well_and_its_argument_counts_more() -> None:
    world, peer = scene()
    peer.call(methods.QueueBind("q", "amq.fanout"), expect=methods.QueueBindOk)
    follow(world, {"alternate-exchange": "amq.fanout"}, pattern=".*", apply_to="exchanges")
    for name, arguments, expected in (("x", {}, 1), ("y", {"alternate-exchange": "amq.direct"}, 2)):
        declare = methods.ExchangeDeclare(name, "direct", arguments=arguments)
        peer.call(declare, expect=methods.ExchangeDeclareOk)
        peer.publish(name, "k")
        # amq.direct leads nowhere, and has an alternate by the policy itself.
        assert peer.counts() == (expected, 0)


def test_the_default_exchange_follows_no_policy() -> None:
    world, peer = scene()
    peer.call(methods.QueueBind("q", "amq.fanout"), expect=methods.QueueBindOk)
    follow(world, {"alternate-exchange": "amq.fanout"}, pattern=".*", apply_to="exchanges")
    peer.publish("", "missing")
    assert peer.counts() == (0, 0)


def test_views_and_replay() -> None:
    world, peer = scene(durable=True)
    follow(world, {"max-length": 1}, priority=3, apply_to="queues")
    follow(world, {"message-ttl": 5}, name="o", operator=True)
    assert list(views.policies(world.broker, operator=False)) == [
        views.PolicyView("/", "p", "^q", "queues", 3, {"max-length": 1})
    ]
    assert [view.name for view in views.policies(world.broker, operator=True)] == ["o"]
    peer.leave()
    other = world.replayed()
    assert policies_of(other) == ("p", "o")
    assert settings_of(other) == settings_of(world)


def test_ten_thousand_queues_follow_quickly() -> None:
    world = World()
    peer = world.peer()
    for number in range(10_000):
        peer.say(methods.QueueDeclare(f"orders.{number}", no_wait=True))
    peer.flush()
    follow(world, {"max-length": 1}, pattern="^orders\\.[0-9]+5$")
    assert sum(view.policy is not None for view in queues(world.broker)) == 999
