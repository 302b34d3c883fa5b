"""Views: what outsiders see, frozen."""

from pandomq import methods
from pandomq.broker import client_views, views
from pandomq.fieldtable import Int32
from tests.unit.broker.conversation import NOW_MS, World


def test_queues_exchanges_and_bindings() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True, arguments={"x-max-length": Int32(5)})
    peer.declare("mine", exclusive=True)
    peer.call(methods.ExchangeDeclare("x", "topic", auto_delete=True), expect=methods.ExchangeDeclareOk)
    peer.call(methods.QueueBind("q", "x", "a.#"), expect=methods.QueueBindOk)
    peer.publish("x", "a.b", b"1234").publish("", "q", b"1")
    peer.get("q", no_ack=False)
    shared, private = views.queues(world.broker)
    assert (shared.name, shared.durable, shared.exclusive, shared.owner) == ("q", True, False, None)
    assert (shared.ready, shared.ready_bytes, shared.unacked, shared.published) == (1, 1, 1, 2)
    assert shared.arguments == {"x-max-length": 5}
    assert (private.name, private.exclusive, private.owner) == ("mine", True, "127.0.0.1:1")
    found = {exchange.name: exchange for exchange in views.exchanges(world.broker)}
    assert {"", "amq.direct", "amq.topic", "x"} <= set(found)
    assert (found["x"].type, found["x"].auto_delete) == ("topic", True)
    bindings = [(binding.source, binding.destination, binding.routing_key) for binding in views.bindings(world.broker)]
    assert bindings == [("", "q", "q"), ("", "mine", "mine"), ("x", "q", "a.#")]


def test_connections_channels_and_consumers() -> None:
    world = World()
    peer = world.peer()
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk, channel=2)
    peer.declare("q")
    peer.publish("", "q")
    peer.send(methods.BasicQos(0, 7, False), methods.TxSelect())
    peer.consume("q", "t", exclusive=True, arguments={"x-priority": Int32(3)})
    peer.hear()
    peer.send(methods.BasicAck(1))
    peer.publish("", "q")
    (connection,) = client_views.connections(world.broker)
    assert (connection.user, connection.vhost, connection.channels) == ("guest", "/", 2)
    assert (connection.connected_ms, connection.pending_bytes) == (NOW_MS, 0)
    assert connection.client_properties == {"capabilities": {"consumer_cancel_notify": True}}
    first, second = client_views.channels(world.broker)
    assert (first.number, first.transactional, first.consumers, first.prefetch_count) == (1, True, 1, 7)
    assert (first.unacked, first.uncommitted, first.acks_uncommitted) == (1, 1, 1)
    assert (second.number, second.confirms, second.transactional) == (2, True, False)
    (consumer,) = client_views.consumers(world.broker)
    assert (consumer.queue, consumer.tag, consumer.exclusive, consumer.priority) == ("q", "t", True, 3)
    assert (consumer.prefetch_count, consumer.no_ack, consumer.active, consumer.delivered) == (7, False, True, 1)
    counters = client_views.counters(world.broker)
    assert (counters.published, counters.delivered, counters.held_messages) == (2, 1, 1)
    assert (counters.connections, counters.channels, counters.queues) == (1, 2, 1)
