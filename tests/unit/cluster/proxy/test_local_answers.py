"""Requests on a channel of a front are answered in order, whether the root answers them or the front."""

from __future__ import annotations

import random

import pytest

from pandomq import methods
from pandomq.cluster.proxy import limits
from pandomq.methods import Method
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_private_queues import bind

PERSISTENT = Properties(delivery_mode=2)
LOCAL: dict[str, tuple[Method, type[Method]]] = {
    "qos": (methods.BasicQos(0, 5, False), methods.BasicQosOk),
    "flow": (methods.ChannelFlow(True), methods.ChannelFlowOk),
    "confirm": (methods.ConfirmSelect(), methods.ConfirmSelectOk),
    "tx": (methods.TxSelect(), methods.TxSelectOk),
    "recover": (methods.BasicRecover(True), methods.BasicRecoverOk),
    "declare": (methods.QueueDeclare("new", exclusive=True), methods.QueueDeclareOk),
    "declare again": (methods.QueueDeclare("mine", exclusive=True), methods.QueueDeclareOk),
    "declare passively": (methods.QueueDeclare("mine", passive=True), methods.QueueDeclareOk),
    "bind": (methods.QueueBind("mine", "amq.topic", "k"), methods.QueueBindOk),
    "bind again": (methods.QueueBind("mine", "amq.direct", "k"), methods.QueueBindOk),
    "unbind": (methods.QueueUnbind("mine", "amq.direct", "k"), methods.QueueUnbindOk),
    "purge": (methods.QueuePurge("mine"), methods.QueuePurgeOk),
    "get": (methods.BasicGet("mine"), methods.BasicGetOk),
    "get nothing": (methods.BasicGet("empty"), methods.BasicGetEmpty),
    "consume": (methods.BasicConsume("empty", "u"), methods.BasicConsumeOk),
    "consume replies": (methods.BasicConsume("amq.rabbitmq.reply-to", "u", no_ack=True), methods.BasicConsumeOk),
    "cancel": (methods.BasicCancel("t"), methods.BasicCancelOk),
    "delete": (methods.QueueDelete("mine"), methods.QueueDeleteOk),
}


def prepared(cluster: Cluster) -> Peer:
    """With private queues, and a consumer of one."""
    peer = cluster.front.peer()
    for name in ("mine", "empty", "consumed"):
        peer.declare(name, exclusive=True)
    bind(peer, "mine", "amq.direct", "k")
    peer.publish("", "mine", b"kept")
    peer.consume("consumed")
    peer.hear()
    return peer


def kinds(peer: Peer) -> list[type[Method]]:
    return [type(method) for method in peer.heard()]


@pytest.mark.parametrize("said", LOCAL)
def test_a_return_comes_before_the_answer_to_a_method_after_the_publish(said: str) -> None:
    method, answer = LOCAL[said]
    peer = prepared(Cluster())
    peer.say_publish("", "nobody", b"one", mandatory=True).say(method).flush()
    assert kinds(peer) == [methods.BasicReturn, answer]
    assert (peer.client.held_bytes, peer.client.waits) == (0, False)


@pytest.mark.parametrize("said", LOCAL)
def test_a_publish_that_is_not_mandatory_only_delays_an_answer(said: str) -> None:
    method, answer = LOCAL[said]
    peer = prepared(Cluster())
    peer.say_publish("", "nobody", b"one").say(method).flush()
    assert kinds(peer) == [answer]


@pytest.mark.parametrize("said", ["qos", "flow", "confirm", "purge", "get", "cancel"])
def test_with_nothing_before_it_the_front_answers_on_the_spot(said: str) -> None:
    method, answer = LOCAL[said]
    cluster = Cluster()
    peer = prepared(cluster)
    peer.call(methods.ChannelFlow(True), expect=methods.ChannelFlowOk)
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    assert isinstance(peer.call(method, expect=answer), answer)


@pytest.mark.parametrize("said", ["unknown tag", "publish"])
def test_a_return_comes_before_the_close_of_the_channel_for_a_method_after_the_publish(said: str) -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.BasicQos(0, 3, False))
    if said == "publish":
        peer.say_publish("no such exchange", "", b"two", mandatory=True)
    else:
        peer.say(methods.BasicAck(77, False))
    peer.say_publish("", "nobody", b"three", mandatory=True).flush()
    heard = peer.heard()
    assert [type(method) for method in heard] == [methods.BasicReturn, methods.BasicQosOk, methods.ChannelClose]
    assert isinstance(heard[-1], methods.ChannelClose)
    assert heard[-1].reply_code == (404 if said == "publish" else 406)
    peer.reopen()
    peer.say_publish("", "nobody", b"four", mandatory=True).say(methods.BasicQos(0, 3, False)).flush()
    assert kinds(peer) == [methods.BasicReturn, methods.BasicQosOk]


def test_a_channel_that_is_being_closed_receives_the_close_when_its_tunnel_is_lost() -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    cluster.root = None
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.BasicAck(77, False)).flush()
    assert peer.heard() == []
    cluster.front.lose_tunnels()
    cluster.settle()
    assert kinds(peer) == [methods.ChannelClose]


def test_no_answer_follows_a_close_of_the_channel_by_the_root() -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    peer.call(methods.ExchangeDeclare("e", "fanout"), expect=methods.ExchangeDeclareOk)
    root = cluster.root
    assert root is not None
    feed, cluster._feed = cluster._feed, lambda: False  # type: ignore[method-assign]
    root.peer().send(methods.ExchangeDelete("e"))
    # The front does not know yet that there is no such exchange.
    peer.say_publish("e", "", b"one", mandatory=True).say(methods.BasicQos(0, 3, False)).flush()
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 404
    cluster._feed = feed  # type: ignore[method-assign]
    cluster.settle()
    assert peer.client.held_bytes == 0
    peer.reopen()
    peer.call(methods.BasicQos(0, 3, False), expect=methods.BasicQosOk)


def test_nothing_is_delivered_before_the_consumer_knows_that_it_is_one() -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.BasicConsume("mine", "u")).flush()
    assert kinds(peer) == [methods.BasicReturn, methods.BasicConsumeOk, methods.BasicDeliver]
    peer.publish("", "mine", b"two")
    assert peer.bodies() == [b"two"]


def test_a_get_behind_an_answer_that_waits_is_answered_after_it() -> None:
    peer = prepared(Cluster())
    peer.say_publish("", "nobody", b"one", mandatory=True)
    peer.say(methods.BasicQos(0, 2, False)).say(methods.BasicGet("mine")).say(methods.BasicGet("mine")).flush()
    assert kinds(peer) == [methods.BasicReturn, methods.BasicQosOk, methods.BasicGetOk, methods.BasicGetEmpty]


@pytest.mark.parametrize("confirms", [False, True])
@pytest.mark.proves("R28")
def test_another_root_returns_it_before_the_answer_too(confirms: bool) -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    if confirms:
        peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    cluster.front.carry, carry = lambda: False, cluster.front.carry  # type: ignore[method-assign]
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.BasicQos(0, 3, False)).flush()
    assert peer.heard() == []
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.lose_root()
    assert peer.heard() == []
    cluster.find_root()
    # Without confirms the publish is lost with the root.
    returned = [methods.BasicReturn, methods.BasicQosOk, methods.BasicAck]
    assert kinds(peer) == (returned if confirms else [methods.BasicQosOk])
    peer.say_publish("", "nobody", b"two", mandatory=True).say(methods.BasicQos(0, 3, False)).flush()
    assert kinds(peer)[:2] == [methods.BasicReturn, methods.BasicQosOk]


def test_an_answer_of_another_connection_waits_for_the_next_root() -> None:
    """The trunk answers while the client's tunnel is lost."""
    cluster = Cluster()
    peer = prepared(cluster)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    pipes = {pipe.tunnel.purpose: pipe for pipe in cluster.front.pipes}
    carry, cluster.front.carry = cluster.front.carry, lambda: False  # type: ignore[method-assign]
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.QueueDeclare("new", exclusive=True)).flush()
    dial, cluster.front.dial = cluster.front.dial, lambda root: False  # type: ignore[method-assign]
    pipes["tunnel"].tunnel.session.take()
    pipes["tunnel"].tunnel.lost("broken")
    cluster.front.pipes.remove(pipes["tunnel"])
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.settle()
    assert peer.heard() == []
    assert peer.client.held_bytes
    cluster.front.dial = dial  # type: ignore[method-assign]
    cluster.pass_time(2_000)
    assert kinds(peer) == [methods.BasicReturn, methods.QueueDeclareOk, methods.BasicAck]


def test_an_answer_does_not_wait_for_ever_for_a_root() -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.BasicQos(0, 3, False)).flush()
    cluster.lose_root()
    cluster.pass_time(limits.ROOT_WAIT_MS)
    assert peer.fault().reply_code == 320


def test_a_client_with_an_answer_that_waits_is_not_read_from() -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    carry, cluster.front.carry = cluster.front.carry, lambda: False  # type: ignore[method-assign]
    peer.say_publish("", "nobody", b"one", mandatory=True)
    for _ in range(40):
        peer.say(methods.ChannelFlow(True))
    peer.flush()
    assert peer.client.waits
    assert (len(cluster.front.waiting), peer.heard()) == (1, [])
    assert 0 < peer.client.held_bytes < 20
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.settle()
    assert kinds(peer) == [methods.BasicReturn, *[methods.ChannelFlowOk] * 40]


def test_a_client_that_closes_receives_the_answers_that_wait() -> None:
    cluster = Cluster()
    peer = prepared(cluster)
    settle, cluster.settle = cluster.settle, lambda: None  # type: ignore[method-assign]
    peer.say_publish("", "nobody", b"one", mandatory=True).say(methods.BasicQos(0, 3, False)).flush()
    front = cluster.front.broker
    assert not front.may_release(peer.client, cluster.front.now_ms)
    cluster.settle = settle  # type: ignore[method-assign]
    for _ in range(4):
        cluster.settle()
        if front.may_release(peer.client, cluster.front.now_ms):
            break
    assert front.may_release(peer.client, cluster.front.now_ms)
    assert kinds(peer) == [methods.BasicReturn, methods.BasicQosOk]


class Talk:
    """A client's requests that are answered or returned, in order, and the answers so far."""

    def __init__(self, peer: Peer, chance: random.Random) -> None:
        self._peer = peer
        self._chance = chance
        self._count = 0
        self.said: list[str] = []
        self.heard: list[str] = []

    def say(self) -> None:
        self._count += 1
        if self._chance.random() < 0.4:
            self._peer.say(methods.QueueDeclare(f"a{self._count}", exclusive=True))
            self.said.append(f"a{self._count}")
            return
        lost = self._chance.random() < 0.6
        self._peer.say_publish("", "nobody" if lost else "q", b"r%d" % self._count, PERSISTENT, mandatory=True)
        self.said += [f"r{self._count}"] if lost else []

    def listen(self) -> None:
        for received in self._peer.hear():
            match received.method:
                case methods.BasicReturn():
                    self.heard.append(received.body.decode())
                case methods.QueueDeclareOk(queue):
                    self.heard.append(queue)
                case other:
                    assert isinstance(other, methods.BasicAck)

    def check(self) -> None:
        """Another root returns nothing a second time."""
        assert self.heard == self.said


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.proves("R28")
def test_answers_keep_their_order_whatever_is_sent_and_whenever_the_root_changes(seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster(late=True, replicated=True)
    root = cluster.root
    assert root is not None
    peer = cluster.front.peer()
    peer.send(methods.QueueDeclare("q", durable=True), methods.ConfirmSelect())
    root.commit()
    cluster.settle()
    peer.hear()
    talk = Talk(peer, chance)
    settle = cluster.settle
    for _ in range(30):
        cluster.settle = lambda: None  # type: ignore[method-assign]
        for _ in range(chance.randint(1, 3)):
            talk.say()
        peer.flush()
        cluster.stir(chance, chance.randint(0, 25))
        talk.listen()
        cluster.settle = settle  # type: ignore[method-assign]
        if chance.random() < 0.1:
            root = cluster.change_root()
            root.late = True
            talk.listen()
    root.late = False
    for _ in range(5):
        root.commit()
        cluster.pass_time(100)
        talk.listen()
    talk.check()
    assert peer.client.held_bytes == 0
