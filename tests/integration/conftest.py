"""Fixtures for tests with real clients: one broker process per test worker, unique names, connections that are closed.

With PANDOMQ_TEST_URL=amqp://… the same tests run against that broker instead. They are true of RabbitMQ; a test marked
`only_ours(reason)` states a law in which ours follows a newer RabbitMQ, or one that cannot be tested on a foreign
broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

from .broker_under_test import BrokerUnderTest, Names, SomewhereInACluster, is_rabbitmq
from .cluster.under_test import ClusterUnderTest
from .http_broker import HttpBroker
from .watched_broker import WatchedBroker

TEST_TIMEOUT_S = 180
URL_VARIABLE = "PANDOMQ_TEST_URL"
HERE = Path(__file__).parent
NODE_DIRECTORY = HERE / "node"

Connect = Callable[..., pika.BlockingConnection]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only_ours(reason): not asked of a foreign broker")
    config.addinivalue_line("markers", "proves(*ids): the requirements that a test proves")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))
        # Some clients leave a socket to the garbage collector, which is an error of those clients.
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory, cluster_under_test: ClusterUnderTest | None
) -> Iterator[BrokerUnderTest]:
    if cluster_under_test is not None:
        yield SomewhereInACluster(cluster_under_test)
        return
    url = os.environ.get(URL_VARIABLE)
    if url:
        yield BrokerUnderTest(url, process=None, is_reference=is_rabbitmq(url))
        return
    process = WatchedBroker(tmp_path_factory.mktemp("broker"))
    process.start()
    yield BrokerUnderTest(process.url, process=process, is_reference=False)
    process.check()
    process.stop()


@pytest.fixture(autouse=True)
def broker_stays_healthy(broker: BrokerUnderTest, request: pytest.FixtureRequest) -> Iterator[None]:
    """Attributes a dead broker, or an exception in its log, to the test during which it occurred."""
    marker = request.node.get_closest_marker("only_ours")
    if marker is not None and broker.process is None:
        pytest.skip(f"not asked of a foreign broker: {marker.args[0]}")
    yield
    if broker.process is not None:
        broker.process.check()


@pytest.fixture(autouse=True, scope="module")
def sockets_left_by_clients_end_here() -> Iterator[None]:
    """Collects them while their warnings are ignored, not during another test."""
    yield
    gc.collect()


@pytest.fixture
def names(broker: BrokerUnderTest) -> Iterator[Names]:
    names = Names(broker)
    yield names
    names.delete_all()


@pytest.fixture
def connect(broker: BrokerUnderTest, names: Names) -> Iterator[Connect]:
    """Opens blocking pika connections; keyword arguments are attributes of pika's Parameters."""
    opened: list[pika.BlockingConnection] = []

    def open_one(**overrides: Any) -> pika.BlockingConnection:
        connection = broker.connect(**overrides)
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        # The test may have broken it on purpose.
        with contextlib.suppress(AMQPError):
            if connection.is_open:
                connection.close()


@pytest.fixture
def connection(connect: Connect) -> pika.BlockingConnection:
    return connect()


@pytest.fixture
def channel(connection: pika.BlockingConnection) -> BlockingChannel:
    return connection.channel()


@pytest.fixture(scope="session")
def node() -> str:
    """The interpreter, for tests with amqplib."""
    return node_client("amqplib")


def node_client(package: str) -> str:
    """The interpreter. It and the package, which `make setup` installs, may be missing on a developer's machine
    only."""
    found = shutil.which("node")
    if found is not None and (NODE_DIRECTORY / "node_modules" / package).exists():
        return found
    reason = f"node or {package} is missing: make setup"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def http_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    """One of ours that also listens for HTTP."""
    broker = HttpBroker(tmp_path_factory.mktemp("http"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def api(http_broker: HttpBroker) -> httpx.Client:
    """A client of the API with the rights of an administrator."""
    return http_broker.client()
