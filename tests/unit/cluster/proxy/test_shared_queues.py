"""Shared queues through a front: asked of the root, as if there were one broker."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.properties import Properties
from tests.unit.cluster.proxy.pipe_world import Cluster


@pytest.mark.proves("R12")
def test_a_queue_declared_on_a_front_is_there_on_all_brokers() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    assert here.declare("q", durable=True) == methods.QueueDeclareOk("q", 0, 0)
    assert cluster.root is not None
    assert cluster.root.peer().declare("q", passive=True).queue == "q"
    assert there.declare("q", passive=True).queue == "q"
    assert "q" in cluster.fronts[1].broker.state.vhosts["/"].queues
    there.publish("", "q", b"one")
    assert here.counts() == (1, 0)
    assert here.call(methods.QueuePurge("q"), expect=methods.QueuePurgeOk).message_count == 1
    assert there.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk).message_count == 0
    assert "q" not in cluster.fronts[0].broker.state.vhosts["/"].queues
    assert here.refused(methods.QueueDeclare("q", passive=True)).reply_code == 404


@pytest.mark.proves("R29")
def test_confirms_mean_the_same_on_a_front() -> None:
    cluster = Cluster(late=True)
    peer = cluster.front.connect()
    peer.send(methods.ChannelOpen())
    peer.send(methods.QueueDeclare("q", durable=True))
    assert peer.heard() == [methods.ChannelOpenOk()]
    assert cluster.root is not None
    cluster.root.commit()
    cluster.settle()
    assert peer.heard() == [methods.QueueDeclareOk("q", 0, 0)]
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("", "q", b"one", Properties(delivery_mode=2))
    assert peer.heard() == []
    cluster.root.commit()
    cluster.settle()
    assert peer.heard() == [methods.BasicAck(1, False)]


def test_an_unroutable_mandatory_message_is_returned() -> None:
    peer = Cluster().front.peer()
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    peer.publish("", "nobody", b"one", mandatory=True)
    returned, confirm = peer.hear()
    assert isinstance(returned.method, methods.BasicReturn)
    assert returned.body == b"one"
    assert confirm.method == methods.BasicAck(1, False)
