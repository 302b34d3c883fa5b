"""How often a front asks a root that does not let it in."""

from __future__ import annotations

from unittest import mock

from pandomq import methods
from pandomq.broker.client import Client
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.proxy.tunnel import TRUNK
from pandomq.errors import connection_forced
from tests.unit.cluster.proxy.pipe_world import Cluster


def refused_for(cluster: Cluster, milliseconds: int) -> int:
    """How often a front asks a root that refuses it; then that refuses no more."""
    root = cluster.root
    assert root is not None
    asked = 0

    def refuse(**_who: object) -> Client:
        nonlocal asked
        asked += 1
        raise connection_forced("it does not serve yet")

    with mock.patch.object(root.broker, "connect", refuse):
        cluster.front.lose_tunnels()
        cluster.settle()
        cluster.pass_time(milliseconds)
    return asked


def test_a_trunk_is_dialed_often_at_first_and_at_once_if_the_root_is_another() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("", exclusive=True)
    (trunk,) = cluster.front.broker.trunks.values()
    # Every 20 ms, since a new root does not wait for long.
    assert 15 <= refused_for(cluster, 400) <= 22
    cluster.pass_time(100)
    assert trunk.settled
    refused_for(cluster, 20_000)
    assert not trunk.settled and trunk.attempt_count > 20
    cluster.settle()
    assert not trunk.settled, "by now it is patient"
    cluster.front.broker.root_changed()
    cluster.pass_time(0)
    assert trunk.settled and trunk.attempt_count == 0


def test_a_trunk_is_there_within_the_shortest_lease_after_a_new_root_begins_to_serve() -> None:
    """The root confirms publishes without the private queues of brokers whose trunks come later than a lease."""
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("", exclusive=True)
    (trunk,) = cluster.front.broker.trunks.values()
    assert refused_for(cluster, 45)
    assert not trunk.settled
    cluster.pass_time(50)
    assert trunk.settled


def test_a_trunk_that_is_lost_with_a_message_in_the_same_batch_owes_the_next_one_no_receipt() -> None:
    """It is dialed again in that batch; what came is counted anew on each connection."""
    cluster = Cluster()
    front, root = cluster.front, cluster.root
    assert root is not None
    subscriber = front.peer()
    subscriber.declare("mine", exclusive=True)
    subscriber.call(methods.QueueBind("mine", "amq.fanout", ""), expect=methods.QueueBindOk)
    root.peer().publish("amq.fanout", "", b"news")
    root.run([])
    moved = [pipe.carry_down() for pipe in front.pipes if pipe.tunnel.purpose == TRUNK]
    assert moved == [True]
    front.lose_tunnels()
    front.tick()
    (trunk,) = front.broker.trunks.values()
    assert trunk.tunnel is not None and not trunk.tunnel.is_open
    cluster.settle()
    assert trunk.settled
    assert subscriber.counts("mine")[0] == 1


def test_a_client_that_waited_for_a_root_asks_the_next_one_as_often_as_if_none_had_refused_it() -> None:
    """Earlier roots refused it, and when there was none, its next attempt could not begin."""
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    client = peer.client
    assert isinstance(client, FrontClient)
    assert refused_for(cluster, 4_000) > 5
    root, cluster.root = cluster.root, None
    cluster.pass_time(2_000)
    assert cluster.front.broker.wanted and not client.attached
    cluster.front.broker.root_changed()
    cluster.root = root
    # This root does not serve yet, either.
    assert refused_for(cluster, 0) == 1
    cluster.pass_time(150)
    assert client.attached
