"""Exchanges whose way depends on all bindings, when no front knows all of them: the root decides, and nothing is lost
or doubled."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from pandomq import methods
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster

MESSAGES = [b"%d" % number for number in range(60)]


def subscriber(cluster: Cluster, where: int, exchange: str, key: str) -> Peer:
    """A private queue on one of the fronts, or (by -1) at the root."""
    assert cluster.root is not None
    peer = cluster.root.peer() if where < 0 else cluster.fronts[where].peer()
    peer.declare("", exclusive=True)
    peer.call(methods.QueueBind("", exchange, key), expect=methods.QueueBindOk)
    peer.call(methods.BasicConsume("", "t", no_ack=True), expect=methods.BasicConsumeOk)
    return peer


@pytest.mark.proves("R30")
@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("exchange_type", ["x-random", "x-consistent-hash"])
def test_one_queue_of_the_whole_cluster_gets_the_message(exchange_type: str, transactional: bool) -> None:
    cluster = Cluster("b", "c")
    publisher = cluster.fronts[0].peer()
    publisher.call(methods.ExchangeDeclare("one", exchange_type), expect=methods.ExchangeDeclareOk)
    publisher.declare("shared")
    publisher.call(methods.QueueBind("shared", "one", "1"), expect=methods.QueueBindOk)
    subscribers = [subscriber(cluster, where, "one", "1") for where in (-1, 0, 0, 1)]
    if transactional:
        publisher.call(methods.TxSelect(), expect=methods.TxSelectOk)
    for body in MESSAGES:
        publisher.publish("one", body.decode(), body)
    if transactional:
        publisher.call(methods.TxCommit(), expect=methods.TxCommitOk)
    parts = [peer.bodies() for peer in subscribers]
    shared: list[bytes] = []
    while (got := publisher.get("shared")) is not None:
        shared.append(got.body)
    assert sorted(chain(*parts, shared)) == sorted(MESSAGES)
    assert shared
    assert parts[0]
    assert parts[1] + parts[2]
    assert parts[3]


@pytest.mark.parametrize("mandatory", [False, True])
def test_an_alternate_gets_messages_that_match_no_queue_of_the_cluster(mandatory: bool) -> None:
    cluster = Cluster("b", "c")
    publisher = cluster.fronts[0].peer()
    arguments: dict[str, Any] = {"alternate-exchange": "amq.fanout"}
    publisher.call(methods.ExchangeDeclare("e", "direct", arguments=arguments), expect=methods.ExchangeDeclareOk)
    rest, elsewhere = subscriber(cluster, 0, "amq.fanout", ""), subscriber(cluster, 1, "e", "k")
    publisher.publish("e", "k", b"matched", mandatory=mandatory).publish("e", "other", b"rest", mandatory=mandatory)
    assert (rest.bodies(), elsewhere.bodies()) == ([b"rest"], [b"matched"])
    assert publisher.heard() == []
