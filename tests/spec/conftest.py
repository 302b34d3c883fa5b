"""The broker under test: ours, started here, one per worker; or the one that PANDOMQ_TEST_URL names.

Tests marked `ours_only` follow RabbitMQ 4 or our own extensions, and are skipped for an external broker. Objects that a
test declares through its connections are deleted after it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.client import Address, Channel, Connect, Connection
from tests.support.process import BrokerProcess

if TYPE_CHECKING:
    from tests.integration.cluster.under_test import ClusterUnderTest

URL = os.environ.get("PANDOMQ_TEST_URL", "")
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ours_only: not what the outside broker of PANDOMQ_TEST_URL does")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if URL:
        for item in items:
            if item.get_closest_marker("ours_only"):
                item.add_marker(pytest.mark.skip(reason="an outside broker is tested"))


class SomewhereInACluster(Address):
    """Selects another broker for each connection."""

    def __init__(self, cluster: ClusterUnderTest) -> None:
        super().__init__("127.0.0.1", 0)
        object.__setattr__(self, "_cluster", cluster)

    def __getattribute__(self, attribute: str) -> Any:
        if attribute == "port":
            return object.__getattribute__(self, "_cluster").choose().port
        return super().__getattribute__(attribute)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory, cluster_under_test: ClusterUnderTest | None) -> Iterator[Address]:
    """The address of the broker under test."""
    if cluster_under_test is not None:
        yield SomewhereInACluster(cluster_under_test)
        return
    if URL:
        yield Address.of_url(URL)
        return
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
    broker.start()
    try:
        yield Address("127.0.0.1", broker.port)
        assert broker.alive, f"the broker died:\n{broker.log_text()}"
    finally:
        code = broker.stop()
    assert code == 0, f"the broker ended with {code}:\n{broker.log_text()}"
    assert "Traceback" not in broker.log_text(), broker.log_text()


@pytest.fixture
def connect(address: Address) -> Iterator[Connect]:
    """Opens connections, closes them afterwards, and deletes objects that were declared through them."""
    opened: list[Connection] = []

    def open_one(**options: Any) -> Connection:
        connection = Connection.opened(address, **options)
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        with contextlib.suppress(OSError, AssertionError):
            connection.close()
    declared = set().union(*(connection.declared for connection in opened))
    if declared:
        delete(address, declared)


def delete(address: Address, declared: set[tuple[str, str]]) -> None:
    connection = Connection.opened(address)
    channel = connection.channel()
    for kind, name in sorted(declared):
        try:
            channel.rpc(f"{kind}.delete", **{kind: name})
        except AssertionError:
            # Refused names were never declared; the refusal closes the channel.
            channel = connection.channel()
    connection.close()


@pytest.fixture
def raw(address: Address) -> Iterator[Connection]:
    """A socket on which nothing has been sent yet."""
    connection = Connection(address)
    yield connection
    connection.drop()


@pytest.fixture
def connection(connect: Connect) -> Connection:
    return connect()


@pytest.fixture
def channel(connection: Connection) -> Channel:
    return connection.channel()


@pytest.fixture
def other(connect: Connect) -> Channel:
    """A channel of another connection."""
    return connect().channel()


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"spec-{os.getpid()}-{next(_numbers)}"
