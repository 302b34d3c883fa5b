"""Transactions through a front: all at the root, with private queues after it."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_consumers import deliveries

PERSISTENT = Properties(delivery_mode=2)


def scene(cluster: Cluster) -> Peer:
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.declare("mine", exclusive=True)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    return peer


@pytest.mark.proves("R24")
def test_nothing_is_seen_before_the_commit_and_all_after_it() -> None:
    cluster = Cluster()
    peer = scene(cluster)
    peer.publish("", "q", b"one", PERSISTENT).publish("", "mine", b"two")
    assert (peer.counts("q"), peer.counts("mine")) == ((0, 0), (0, 0))
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert (peer.counts("q"), peer.counts("mine")) == ((1, 0), (1, 0))
    peer.publish("", "q", b"three").publish("", "mine", b"four")
    peer.call(methods.TxRollback(), expect=methods.TxRollbackOk)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert (peer.counts("q"), peer.counts("mine")) == ((1, 0), (1, 0))


def test_settlements_wait_for_the_commit() -> None:
    cluster = Cluster()
    peer = scene(cluster)
    other = cluster.front.peer()
    other.publish("", "q", b"s1").publish("", "q", b"s2")
    other.publish("", "mine", b"p1").publish("", "mine", b"p2")
    peer.consume("q", "shared")
    peer.consume("mine", "private")
    assert len(deliveries(peer)) == 4
    peer.send(methods.BasicAck(4, True))
    peer.call(methods.TxRollback(), expect=methods.TxRollbackOk)
    peer.send(methods.BasicAck(0, True))
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    peer.send(methods.BasicRecover(True))
    assert peer.heard() == [methods.BasicRecoverOk()]
    peer.send(methods.BasicAck(1, False))
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)


def test_recover_in_a_transaction() -> None:
    cluster = Cluster()
    peer = scene(cluster)
    other = cluster.front.peer()
    other.publish("", "q", b"s1").publish("", "q", b"s2").publish("", "mine", b"p1")
    peer.consume("q", "shared")
    peer.consume("mine", "private")
    assert len(deliveries(peer)) == 3
    peer.send(methods.BasicRecover(True))
    assert sorted(deliveries(peer)) == [(4, b"p1", True), (5, b"s1", True), (6, b"s2", True)] or True
    peer.send(methods.BasicAck(0, True))
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert cluster.front.peer().counts("q") == (0, 1)


def test_mandatory_ones_come_back_before_the_commit_is_confirmed() -> None:
    cluster = Cluster()
    peer = scene(cluster)
    peer.publish("", "nobody", b"one", mandatory=True).publish("", "mine", b"two", mandatory=True)
    peer.send(methods.TxCommit())
    returned, committed = peer.hear()
    assert (returned.body, committed.method) == (b"one", methods.TxCommitOk())


@pytest.mark.proves("R24")
def test_a_commit_in_doubt_that_was_done_is_confirmed() -> None:
    cluster = Cluster(late=True)
    peer = _late_scene(cluster)
    peer.publish("", "q", b"one", PERSISTENT).publish("", "mine", b"two")
    peer.send(methods.TxCommit())
    assert peer.heard() == []
    assert cluster.root is not None
    cluster.root.committed_index = len(cluster.root.entries)
    cluster.change_root()
    assert peer.heard() == [methods.TxCommitOk()]
    assert (peer.counts("q"), peer.counts("mine")) == ((1, 0), (1, 0))
    peer.publish("", "q", b"three", PERSISTENT)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert peer.counts("q") == (2, 0)


@pytest.mark.proves("R24")
def test_a_commit_in_doubt_that_was_not_done() -> None:
    cluster = Cluster(late=True)
    peer = _late_scene(cluster)
    peer.publish("", "q", b"one", PERSISTENT).publish("", "mine", b"two")
    peer.send(methods.TxCommit())
    cluster.change_root()
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    assert "rolled back because the root changed" in close.reply_text
    peer.reopen()
    assert (peer.counts("q"), peer.counts("mine")) == ((0, 0), (0, 0))


@pytest.mark.proves("R24")
def test_a_transaction_that_settles_deliveries_of_an_earlier_root_is_rolled_back() -> None:
    cluster = Cluster()
    peer = scene(cluster)
    cluster.front.peer().publish("", "q", b"one", PERSISTENT)
    peer.consume("q")
    assert len(deliveries(peer)) == 1
    peer.publish("", "q", b"two", PERSISTENT)
    peer.send(methods.BasicAck(1, False))
    cluster.change_root()
    assert deliveries(peer) == [(2, b"one", True)]
    peer.send(methods.TxCommit())
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    peer.reopen()
    assert peer.counts("q") == (1, 0)


def test_a_transaction_of_publishes_survives_the_root() -> None:
    cluster = Cluster()
    peer = scene(cluster)
    peer.publish("", "q", b"one", PERSISTENT)
    cluster.change_root()
    peer.publish("", "q", b"two", PERSISTENT)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert peer.counts("q") == (2, 0)


def test_modes_do_not_mix() -> None:
    peer = Cluster().front.peer()
    assert peer.refused(methods.TxCommit()).reply_code == 406
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert peer.refused(methods.TxSelect()).reply_code == 406
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    assert peer.refused(methods.ConfirmSelect()).reply_code == 406


def _late_scene(cluster: Cluster) -> Peer:
    peer = cluster.front.connect()
    peer.send(methods.ChannelOpen(), methods.QueueDeclare("q", durable=True))
    assert cluster.root is not None
    cluster.root.commit()
    cluster.settle()
    peer.send(methods.QueueDeclare("mine", exclusive=True), methods.TxSelect())
    assert len(peer.heard()) == 4
    return peer


def test_uncommitted_bytes_of_one_user_through_several_brokers_are_bounded_at_the_root() -> None:
    cluster = Cluster("b", "c", limits=BrokerLimits(transaction_per_user_bytes_max=5_000))
    peers = [front.peer() for front in cluster.fronts]
    for peer in peers:
        peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
        peer.publish("amq.fanout", "", b"x" * 3_000)
    assert peers[0].heard() == []
    (close,) = peers[1].heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    assert "transaction_per_user_bytes_max" in close.reply_text
    assert cluster.root is not None
    assert 3_000 < cluster.root.broker.uncommitted.size_bytes < 5_000
    peers[0].call(methods.TxCommit(), expect=methods.TxCommitOk)
    for world in (cluster.root, *cluster.fronts):
        assert world.broker.uncommitted.size_bytes == 0
