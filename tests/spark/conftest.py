"""Fixtures of the Spark tests: one session for the whole process, since it takes ten seconds to start one.

They run in a process of their own (`make test` does so), one after the other: a session uses all cores by itself.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from .sessions import SETTINGS, prepare_environment
from .staging_double import StagingDouble

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
TEST_TIMEOUT_S = 300
END_PATIENCE_S = 60
EVENTS = "events"
CONNECT: Final = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}
"""The session also serves clients of Spark Connect: a second session would take as long again."""
NOT_OURS = ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning", "DeprecationWarning", "FutureWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))
        # Spark's gateway leaves sockets to the garbage collector, and uses features that Python and pandas will remove.
        for warning in NOT_OURS:
            item.add_marker(pytest.mark.filterwarnings(f"ignore::{warning}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two tasks at a time, each tried three times."""
    work = tmp_path_factory.mktemp("spark")
    prepare_environment(work)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,3]").appName("tests").config(map=dict(SETTINGS))
    builder = builder.config("spark.sql.warehouse.dir", str(work / "warehouse")).config(map=dict(CONNECT))
    (work / EVENTS).mkdir()
    builder = builder.config("spark.eventLog.enabled", True).config("spark.eventLog.compress", False)
    builder = builder.config("spark.eventLog.dir", str(work / EVENTS))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    # Its Java process ends when this pipe is closed.
    gateway.proc.stdin.close()
    gateway.proc.wait(END_PATIENCE_S)
    SparkContext._gateway = SparkContext._jvm = None
    # Remaining objects are collected now, while their warnings are ignored.
    del session, builder, gateway
    gc.collect()


@pytest.fixture(scope="session")
def connect_port(spark: SparkSession) -> int:
    """The port on which the session listens for clients of Spark Connect."""
    jvm: Any = spark._jvm
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    port: int = getattr(service, "MODULE$").localPort()
    return port


@pytest.fixture
def event_log(spark: SparkSession) -> Callable[[], str]:
    """The events that the session has sent to its listeners so far, its web pages among them."""
    place = Path(str(spark.conf.get("spark.eventLog.dir")))
    return lambda: "".join(path.read_text() for path in place.rglob("*") if path.is_file())


@pytest.fixture(autouse=True)
def no_query_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "spark" in request.fixturenames:
        session: SparkSession = request.getfixturevalue("spark")
        for query in session.streams.active:
            with contextlib.suppress(Exception):
                query.stop()


@pytest.fixture
def double() -> Iterator[StagingDouble]:
    """A data port for staged batches in this process."""
    double = StagingDouble()
    try:
        yield double
    finally:
        double.end()
