"""A root that is asked to end hands over first: its clients hear who is next, and nothing is lost or stands still."""

from __future__ import annotations

from random import Random

import pika
import pika.exceptions
import pytest

from .cluster import Cluster
from .process_cases import rolling_restart
from .scene import play


@pytest.mark.proves("R37")
def test_clients_of_a_root_that_ends_hear_where_the_next_one_is(cluster: Cluster) -> None:
    root = cluster.root
    connection = pika.BlockingConnection(root.parameters())
    mark = root.mark()
    root.terminate()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(time_limit=60)
    assert root.wait_for_end() == 0
    heir = cluster.wait_for_root(other_than=root)
    assert closed.value.reply_code == 320
    assert f"the next root is {heir.name} at {heir.address}" in closed.value.reply_text
    assert root.lines(f"handed over to {heir.name}", mark)
    root.start()
    cluster.wait_until_whole()


@pytest.mark.proves("R37")
@pytest.mark.timeout(180)
def test_a_rolling_restart_loses_nothing(cluster: Cluster, chance: Random) -> None:
    marks = {broker.name: broker.mark() for broker in cluster}
    play(rolling_restart, cluster, chance)
    assert any(broker.lines("handed over to", marks[broker.name]) for broker in cluster)
