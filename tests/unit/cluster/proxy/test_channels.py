"""Channels and connections on a front: how they end, here and at the root."""

from __future__ import annotations

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.cluster.proxy import limits
from pandomq.properties import Properties
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_consumers import deliveries, filled


def test_a_client_that_needs_no_root_has_no_tunnel() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.call(methods.BasicQos(0, 5, False), expect=methods.BasicQosOk)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.call(methods.ChannelFlow(True), expect=methods.ChannelFlowOk)
    assert cluster.front.pipes == []
    peer.declare("mine", exclusive=True)
    peer.consume("mine")
    peer.hear()
    assert [pipe.tunnel.purpose for pipe in cluster.front.pipes] == ["trunk"]
    peer.publish("", "mine", b"one")
    assert len(cluster.front.pipes) == 2
    peer.leave()
    assert [pipe.tunnel.purpose for pipe in cluster.front.pipes] == ["trunk"]


def test_a_close_waits_until_the_root_has_received_everything() -> None:
    cluster = Cluster()
    peer = filled(cluster, 2)
    peer.declare("mine", exclusive=True)
    peer.consume()
    assert len(deliveries(peer)) == 2
    front = cluster.front.broker
    client = peer.client
    assert not front.may_release(client, cluster.front.now_ms)
    assert not front.may_release(client, cluster.front.now_ms)
    cluster.settle()
    assert front.may_release(client, cluster.front.now_ms)
    front.disconnect(client, cluster.front.now_ms)
    cluster.settle()
    other = cluster.front.peer()
    assert other.counts() == (2, 0)
    assert other.declare("mine", exclusive=True).queue == "mine"


def test_a_close_does_not_wait_for_ever() -> None:
    cluster = Cluster()
    peer = filled(cluster, 1)
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    assert not cluster.front.broker.may_release(peer.client, cluster.front.now_ms)
    cluster.front.pass_time(limits.CLOSE_WAIT_MS_MAX)
    assert cluster.front.broker.may_release(peer.client, cluster.front.now_ms)


def test_a_fault_found_here_closes_the_channel_there() -> None:
    cluster = Cluster()
    peer = filled(cluster, 1)
    peer.consume()
    peer.hear()
    peer.publish("none", "", b"lost")
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert (close.reply_code, close.failed_class_id, close.failed_method_id) == (404, 60, 40)
    assert cluster.front.peer().counts() == (1, 0)
    peer.reopen()
    assert peer.counts() == (1, 0)


def test_channels_are_apart() -> None:
    cluster = Cluster()
    peer = filled(cluster, 1)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.consume()
    peer.hear()
    assert peer.refused(methods.QueueDeclare("none", passive=True), channel=2).reply_code == 404
    peer.publish("", "q", b"more")
    assert [body for _, body, _ in deliveries(peer)] == [b"more"]


def test_a_violation_of_the_protocol_ends_the_connection() -> None:
    cluster = Cluster()
    peer = filled(cluster, 0)
    peer.publish("", "q", b"x", immediate=True)
    assert peer.fault().reply_code == 540
    peer.leave()
    assert cluster.front.pipes == []


def test_a_client_whose_tunnel_is_full_is_not_read_from() -> None:
    cluster = Cluster()
    peer = filled(cluster, 0)
    carry = cluster.front.carry
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    for _ in range(2 * limits.UPLINK_BYTES_MAX // 100_000):
        peer.publish("", "q", b"x" * 100_000)
    waiting = sum(pipe.tunnel.session.pending_bytes for pipe in cluster.front.pipes)
    assert waiting < limits.UPLINK_BYTES_MAX + 200_000
    assert peer.client.waits
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.settle()
    assert not peer.client.waits
    assert peer.counts() == (2 * limits.UPLINK_BYTES_MAX // 100_000, 0)


def test_a_client_with_too_much_unconfirmed_is_not_read_from() -> None:
    cluster = Cluster(late=True)
    peer = cluster.front.connect()
    peer.send(methods.ChannelOpen(), methods.QueueDeclare("q", durable=True), methods.ConfirmSelect())
    assert cluster.root is not None
    cluster.root.commit()
    cluster.settle()
    body = b"x" * 1_000_000
    count = 2 * limits.KEPT_BYTES_MAX // len(body)
    for _ in range(count):
        peer.publish("", "q", body, Properties(delivery_mode=2))
    assert peer.client.waits
    (channel,) = peer.client.channels.values()
    assert channel.kernel.kept_bytes < limits.KEPT_BYTES_MAX + 2 * len(body)
    while peer.client.waits:
        cluster.root.commit()
        cluster.settle()
    cluster.root.commit()
    cluster.settle()
    assert channel.kernel.kept_count == 0


def test_a_closed_channel_forgets_its_numbers() -> None:
    cluster = Cluster()
    peer = filled(cluster, 0)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("", "q", b"one")
    assert peer.heard() == [methods.BasicAck(1, False)]
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.publish("", "q", b"two")
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("", "q", b"three")
    assert peer.heard() == [methods.BasicAck(1, False)]


def test_limits_of_the_root_hold() -> None:
    cluster = Cluster("b", "c", limits=BrokerLimits(queues_max=2))
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.declare("one", exclusive=True)
    there.declare("two", exclusive=True)
    assert here.refused(methods.QueueDeclare("three", exclusive=True)).reply_code == 406
    assert there.refused(methods.QueueDeclare("three")).reply_code == 406


def test_a_client_that_publishes_is_not_read_from_until_the_root_has_opened_its_channels() -> None:
    """The root is asked to open each of them, since any of them may publish; no local answer waits for that."""
    cluster = Cluster()
    peer = filled(cluster, 0)
    carry = cluster.front.carry
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    for channel in range(2, limits.ASKED_MAX + 3):
        peer.say(methods.ChannelOpen(), channel=channel)
    peer.flush()
    assert len(peer.heard()) == limits.ASKED_MAX + 1
    peer.publish("", "q", b"one")
    (tunnel,) = (pipe.tunnel for pipe in cluster.front.pipes if pipe.tunnel.client is peer.client)
    assert tunnel.asked_count == limits.ASKED_MAX + 1
    assert (peer.client.held_bytes, peer.client.waits) == (0, False)
    peer.publish("", "q", b"two")
    assert (peer.client.held_bytes, peer.client.waits) == (0, True)
    assert [client for client, _ in cluster.front.waiting] == [peer.client]
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.settle()
    assert (tunnel.asked_count, peer.client.waits, peer.counts()) == (0, False, (2, 0))


def test_a_client_whose_answers_wait_is_not_read_from() -> None:
    cluster = Cluster()
    peer = filled(cluster, 0)
    carry = cluster.front.carry
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    for _ in range(2 * limits.ASKED_MAX):
        peer.say(methods.BasicQos(0, 1, False))
    peer.flush()
    # The first is answered at once, the second stays behind what the root was asked before it.
    assert len(peer.heard()) == 1
    (tunnel,) = (pipe.tunnel for pipe in cluster.front.pipes if pipe.tunnel.client is peer.client)
    assert tunnel.asked_count == 2
    assert peer.client.waits
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.settle()
    assert len(peer.heard()) == 2 * limits.ASKED_MAX - 1


def test_a_client_that_closes_receives_what_it_requested_before() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    settle, cluster.settle = cluster.settle, lambda: None  # type: ignore[method-assign]
    peer.say(methods.QueueDeclare("q")).say_publish("", "nobody", b"one", mandatory=True).flush()
    cluster.settle = settle  # type: ignore[method-assign]
    world, front = cluster.front, cluster.front.broker
    for _ in range(20):
        if not any(client is peer.client for client, _ in world.waiting) and front.may_release(
            peer.client, world.now_ms
        ):
            break
        cluster.settle()
    assert front.may_release(peer.client, world.now_ms)
    heard = [type(method) for method in peer.heard()]
    assert heard == [methods.QueueDeclareOk, methods.BasicReturn]
