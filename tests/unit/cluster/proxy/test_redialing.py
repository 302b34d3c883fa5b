"""How often a front asks a root that does not let it in."""

from __future__ import annotations

from unittest import mock

from pandomq.broker.client import Client
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
    # Every tenth of a second, since a new root does not wait for long.
    assert refused_for(cluster, 700) >= 6
    cluster.pass_time(100)
    assert trunk.settled
    refused_for(cluster, 20_000)
    assert not trunk.settled and trunk.attempt_count > 20
    cluster.settle()
    assert not trunk.settled, "by now it is patient"
    cluster.front.broker.root_changed()
    cluster.pass_time(0)
    assert trunk.settled and trunk.attempt_count == 0
