"""Events that happen because time passes."""

import pytest

from pandomq import kernel, methods
from pandomq.broker.limits import BrokerLimits
from pandomq.fieldtable import Int32
from pandomq.properties import Properties
from tests.unit.broker.conversation import World


def test_messages_expire_by_queue_or_by_their_own_wish() -> None:
    peer = World().peer()
    peer.declare("q", arguments={"x-message-ttl": 100})
    peer.publish("", "q")
    peer.publish("", "q", b"", Properties(expiration="1000"))
    peer.publish("", "q", b"", Properties(expiration="10"))
    peer.world.pass_time(99)
    # The one that has expired waits behind the first.
    assert peer.counts("q") == (3, 0)
    peer.world.pass_time(1)
    assert peer.counts("q") == (0, 0)


def test_a_shorter_time_that_comes_to_the_head_is_seen() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.publish("", "q", b"", Properties(expiration="10000"))
    peer.publish("", "q", b"", Properties(expiration="50"))
    peer.get("q")
    peer.world.pass_time(50)
    assert peer.counts("q") == (0, 0)


def test_deadlines_that_were_overtaken_do_not_pile_up() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    for _ in range(50):
        peer.publish("", "q", b"", Properties(expiration="10000"))
        peer.publish("", "q", b"", Properties(expiration="100"))
        peer.get("q")
        world.pass_time(100)
    peer.publish("", "q", b"", Properties(expiration="60000"))
    world.pass_time(30_000)
    assert len(world.broker.timers) == 1


def test_a_ttl_of_nothing_still_reaches_a_waiting_consumer() -> None:
    peer = World().peer()
    peer.declare("q", arguments={"x-message-ttl": 0})
    peer.publish("", "q", b"lost")
    peer.consume("q", no_ack=True)
    peer.publish("", "q", b"caught")
    assert peer.bodies() == [b"caught"]


def test_an_unused_queue_expires() -> None:
    world = World()
    peer = world.peer()
    queues = world.broker.state.vhosts["/"].queues
    peer.declare("q", arguments={"x-expires": 100})
    world.pass_time(90)
    peer.get("q")
    world.pass_time(90)
    peer.declare("q", passive=True)
    world.pass_time(90)
    peer.publish("", "q")
    peer.consume("q", no_ack=True)
    world.pass_time(1000)
    assert "q" in queues
    peer.send(methods.BasicCancel("t"))
    world.pass_time(99)
    assert "q" in queues
    world.pass_time(1)
    assert "q" not in queues
    assert world.broker.next_deadline_ms == kernel.NEVER_MS


def test_a_private_queue_expires_too() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", exclusive=True, arguments={"x-expires": 100})
    peer.declare("gone", arguments={"x-expires": 100})
    peer.call(methods.QueueDelete("gone"), expect=methods.QueueDeleteOk)
    world.pass_time(100)
    assert not world.broker.state.vhosts["/"].queues
    assert peer.client.private_queues == []
    peer.leave()


TIMED_OUT = (
    "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: {} ms. "
    "This timeout value can be configured, see consumers doc guide to learn more"
)


@pytest.mark.parametrize("how", ["broker", "queue", "consumer", "get"])
def test_a_channel_that_does_not_acknowledge_in_time_is_closed(how: str) -> None:
    world = World(limits=BrokerLimits(consumer_timeout_ms=5000 if how in ("broker", "get") else 1_800_000))
    peer, other = world.peer(), world.peer()
    peer.declare("q", arguments={"x-consumer-timeout": 5000} if how == "queue" else {})
    for number in range(3):
        peer.publish("", "q", bytes([number]))
    if how == "get":
        peer.get("q", no_ack=False)
    else:
        peer.consume("q", arguments={"x-consumer-timeout": Int32(5000)} if how == "consumer" else {})
    peer.hear()
    world.pass_time(4000)
    peer.send(methods.BasicAck(1))
    if how == "get":
        peer.get("q", no_ack=False)
    world.pass_time(999)
    assert peer.heard() == []
    world.pass_time(10_000)
    assert peer.heard() == [methods.ChannelClose(406, TIMED_OUT.format(5000), 0, 0)]
    assert other.counts("q") == (2, 0)
    peer.reopen()


def test_a_consumer_that_acknowledges_or_need_not_is_not_closed() -> None:
    world = World(limits=BrokerLimits(consumer_timeout_ms=5000))
    peer, idle, careless = world.peer(), world.peer(), world.peer()
    peer.declare("q")
    peer.consume("q")
    idle.consume("q")
    careless.declare("r")
    careless.consume("r", no_ack=True)
    careless.publish("", "r")
    for _ in range(10):
        peer.publish("", "q")
        world.pass_time(3000)
        for member in (peer, idle):
            if any(isinstance(method, methods.BasicDeliver) for method in member.heard()):
                member.send(methods.BasicAck(0, True))
    for member in (peer, idle, careless):
        assert not any(isinstance(method, methods.ChannelClose) for method in member.heard())


def test_no_time_limit_means_none() -> None:
    world = World(limits=BrokerLimits(consumer_timeout_ms=0))
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q")
    peer.consume("q")
    assert world.broker.next_deadline_ms == kernel.NEVER_MS


def test_delayed_messages_come_in_the_order_of_their_times() -> None:
    world = World()
    peer = world.peer()
    declare = methods.ExchangeDeclare(
        "later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"}
    )
    peer.call(declare, expect=methods.ExchangeDeclareOk)
    peer.declare("q", durable=True)
    peer.call(methods.QueueBind("q", "later", "k"), expect=methods.QueueBindOk)
    for body, delay in ((b"last", 300), (b"first", 100), (b"second", 200), (b"now", 0)):
        peer.publish("later", "k", body, Properties(headers={"x-delay": Int32(delay)}, delivery_mode=2))
    assert peer.counts("q") == (1, 0)
    world.pass_time(199)
    assert peer.counts("q") == (2, 0)
    # Waiting messages are in the log, and so are those that have left the heap.
    other = world.replayed()
    other.now_ms = world.now_ms
    assert other.peer().counts("q") == (2, 0)
    for either in (world, other):
        either.pass_time(101)
        peer = either.peer()
        received = [peer.get("q") for _ in range(5)]
        assert [got.body for got in received if got] == [b"now", b"first", b"second", b"last"]


def test_a_deleted_delaying_exchange_drops_its_waiting_messages() -> None:
    world = World()
    peer = world.peer()
    declare = methods.ExchangeDeclare("later", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    peer.call(declare, expect=methods.ExchangeDeclareOk)
    peer.publish("later", "k", b"", Properties(headers={"x-delay": Int32(10)}))
    assert world.broker.engine.held_messages == 1
    peer.call(methods.ExchangeDelete("later"), expect=methods.ExchangeDeleteOk)
    assert world.broker.engine.held_messages == 0
    world.pass_time(100)


def test_deadlines_of_deleted_queues_are_not_kept_for_ever() -> None:
    world = World()
    peer = world.peer()
    for number in range(3000):
        peer.say(methods.QueueDeclare(f"q{number}", no_wait=True, arguments={"x-expires": 10**9}))
        peer.say_publish("", f"q{number}", b"", Properties(expiration=str(10**9)))
        peer.say(methods.QueueDelete(f"q{number}", no_wait=True)).flush()
    assert len(world.broker.timers) < 2000
    assert peer.hear() == []
