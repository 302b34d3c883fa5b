"""Streams that keep rows that their archive does not have yet, when the root dies between the archiving and the
deletion."""

from __future__ import annotations

from collections.abc import Iterable

import pika
import pytest

from pandomq.data_client.client import DataClient
from tests.integration.data_rows import numbers, read_all
from tests.integration.stream_reader import declare, fill
from tests.integration.waiting import wait_until

from .cluster import Cluster
from .process import ClusterBroker

STREAM, ARCHIVE = "archived", "lake"
SIZE, SEGMENT_MESSAGES = 1000, 20
SMALL = {"x-stream-max-segment-size-bytes": 10_000, "x-max-length-bytes": 10_000, "x-retain-until-archived": ARCHIVE}


def url_of(brokers: Iterable[ClusterBroker]) -> str:
    return ",".join(broker.url for broker in brokers)


def first_offset(broker: ClusterBroker) -> int:
    with DataClient(broker.url) as client:
        return client.range(STREAM).first_offset


def wait_for_retention(broker: ClusterBroker, archived: int) -> None:
    """Waits until everything that is archived is dropped, except for the rest of a segment."""

    def dropped() -> bool:
        first = first_offset(broker)
        assert first <= archived, f"{first} is the first, and {archived} is not archived"
        return first > archived - SEGMENT_MESSAGES

    wait_until(dropped, "what is archived to go")


@pytest.mark.timeout(240)
@pytest.mark.proves("S4")
def test_messages_that_are_not_archived_are_not_deleted(proxies: Cluster) -> None:
    with pika.BlockingConnection(proxies.root.parameters()) as connection:
        declare(connection.channel(), STREAM, **SMALL)
        fill(connection.channel(), STREAM, 0, 100, SIZE)
    with DataClient(url_of(proxies), timeout_s=90.0) as client:
        assert client.range(STREAM).first_offset == 0
        for archived, end in ((40, 150), (120, 200)):
            killed = proxies.root
            client.store_offset(STREAM, ARCHIVE, archived)
            # The rows of its last answer may be dropped on no broker yet, or on some.
            killed.kill()
            heir = proxies.wait_for_root(other_than=killed)
            with pika.BlockingConnection(heir.parameters()) as connection:
                fill(connection.channel(), STREAM, end - 50, end, SIZE)
            # The next root knows the progress of the archive: older rows are deleted there, too, and no others.
            wait_for_retention(heir, archived)
            assert numbers(read_all(client, STREAM)) == list(range(client.range(STREAM).first_offset, end))
            killed.start()
            proxies.wait_until_whole()
            wait_until(lambda: len(set(map(first_offset, proxies))) == 1, "the same on every broker")
