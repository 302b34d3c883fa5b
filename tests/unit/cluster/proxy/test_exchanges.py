"""Exchanges and bindings of shared queues through a front."""

from __future__ import annotations

import pytest

from pandomq import methods
from tests.unit.cluster.proxy.pipe_world import Cluster


@pytest.mark.proves("R12", "R16", "C2")
def test_exchanges_declared_on_one_front_hold_on_the_other() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.call(methods.ExchangeDeclare("source", "topic"), expect=methods.ExchangeDeclareOk)
    there.call(methods.ExchangeDeclare("target", "fanout"), expect=methods.ExchangeDeclareOk)
    here.declare("q")
    there.call(methods.ExchangeBind("target", "source", "a.*"), expect=methods.ExchangeBindOk)
    here.call(methods.QueueBind("q", "target", ""), expect=methods.QueueBindOk)
    there.publish("source", "a.b", b"one")
    assert here.counts() == (1, 0)
    here.call(methods.ExchangeUnbind("target", "source", "a.*"), expect=methods.ExchangeUnbindOk)
    there.publish("source", "a.b", b"two")
    there.call(methods.QueueUnbind("q", "target", ""), expect=methods.QueueUnbindOk)
    here.publish("target", "", b"three")
    assert there.counts() == (1, 0)
    there.call(methods.ExchangeDelete("source"), expect=methods.ExchangeDeleteOk)
    assert here.refused(methods.ExchangeDeclare("source", passive=True)).reply_code == 404


def test_an_answer_waits_until_the_front_knows() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    assert cluster.root is not None
    commands: list[bytes] = []
    cluster.root.broker.on_command = commands.append
    peer.send(methods.ExchangeDeclare("e", "fanout"))
    assert peer.heard() == []
    cluster.front.broker.follow(1, commands)
    cluster.settle()
    assert peer.heard() == [methods.ExchangeDeclareOk()]


def test_an_answer_does_not_wait_for_ever() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    assert cluster.root is not None
    cluster.root.broker.on_command = None
    peer.send(methods.QueueDeclare("q"))
    cluster.front.pass_time(4_000)
    assert peer.heard() == []
    cluster.front.pass_time(1_000)
    assert peer.heard() == [methods.QueueDeclareOk("q", 0, 0)]


def test_no_wait_methods_are_not_answered() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.send(
        methods.ExchangeDeclare("e", "fanout", no_wait=True),
        methods.QueueDeclare("q", no_wait=True),
        methods.QueueDeclare("mine", exclusive=True, no_wait=True),
        methods.QueueBind("q", "e", no_wait=True),
        methods.QueueBind("mine", "e", no_wait=True),
        methods.ConfirmSelect(no_wait=True),
    )
    assert peer.heard() == []
    peer.publish("e", "", b"one")
    assert peer.heard() == [methods.BasicAck(1, False)]
    assert (peer.counts("q"), peer.counts("mine")) == ((1, 0), (1, 0))
    peer.send(methods.QueuePurge("q", no_wait=True), methods.QueueDelete("mine", no_wait=True))
    assert peer.heard() == []
    assert peer.counts("q") == (0, 0)


def test_empty_names_mean_the_queue_that_was_last_declared() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    made = peer.declare("").queue
    assert made.startswith("amq.gen-")
    peer.call(methods.QueueBind("", "amq.direct", ""), expect=methods.QueueBindOk)
    peer.publish("amq.direct", made, b"one")
    assert peer.counts(made) == (1, 0)
    got = peer.get("")
    assert got is not None
    assert peer.call(methods.QueueDelete(""), expect=methods.QueueDeleteOk).message_count == 0
