"""README's blocks under 'Use Spark', run as they stand with another port.

Jobs run by the command line in this process, in the session that all tests share. Those that would go on until they are
interrupted get `--once`.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from typer.testing import CliRunner

from pandomq.cli.main import app
from pandomq.cli.pipeline import running as pipeline_running
from pandomq.pipeline.audit.verdict import ExitCode
from pandomq.pipeline.lake import Lake
from pandomq.trace_form import TRACE_STREAM
from tests.integration.cluster.cluster import Cluster
from tests.integration.cluster.cluster import running as running_cluster
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.spark.ledger import declare_stream
from tests.support.markdown import block
from tests.support.traces import batches, bodies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(900)

README: Final = Path(__file__).parents[2] / "README.md"
SOURCE: Final = ("Use Spark", 1)
JOBS: Final = ("Use Spark", 2)
URL: Final = "amqp://guest:guest@localhost:5672/"
ORDERS: Final = 20
CLUSTER_DATA: Final = "pandomq-cluster"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("readme") / "b")) as broker:
        declare_stream(broker.connect, "orders")
        declare_stream(broker.connect, TRACE_STREAM)
        publish(broker, "orders", [b"%d" % number for number in range(ORDERS)])
        publish(broker, TRACE_STREAM, bodies(batches(1, messages=200, spacing_us=60_000)))
        yield broker


def publish(broker: ConfiguredBroker, stream: str, messages: list[bytes]) -> None:
    with contextlib.closing(broker.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for body in messages:
            channel.basic_publish("", stream, body)


def at(broker: ConfiguredBroker, text: str) -> str:
    """The example with this broker's address."""
    return text.replace(URL, f"amqp://guest:guest@127.0.0.1:{broker.port}/")


@pytest.fixture
def commands(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[str]]:
    """README's jobs by name, as words after `pandomq`, for a directory of the test's own."""

    @contextlib.contextmanager
    def shared(job: str, master: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(pipeline_running, "spark_session", shared)
    # Jobs take signals over, which are pytest's.
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    found = {}
    for line in block(README, JOBS).commands:
        program, pipeline, job, *words = shlex.split(at(broker, line), comments=True)
        assert (program, pipeline) == ("pandomq", "pipeline")
        found[job] = [pipeline, job, *words]
    return found


def run(words: list[str], code: int = 0) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == code, f"{words}: {done.output} {done.exception!r}"
    return done.output


def test_source(spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path) -> None:
    pasted: dict[str, Any] = {"spark": spark}
    exec(at(broker, block(README, SOURCE).text), pasted)
    orders = pasted["orders"]
    assert orders.isStreaming
    writer = orders.writeStream.format("memory").queryName("readme").option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert {"offset", "body"} <= set(orders.columns)


def test_archive(commands: dict[str, list[str]]) -> None:
    run([*commands.pop("archive"), "--once"])
    assert sum(file.rows for file in Lake(Path("LAKE")).files() if file.stream == "orders") == ORDERS


def test_rollup(commands: dict[str, list[str]]) -> None:
    Path("LAKE").mkdir()
    assert "events" in run([*commands["rollup"], "--once"])


def test_audit(commands: dict[str, list[str]]) -> None:
    """Of three brokers at the command's paths, without ledgers: what only ledgers could prove is not judged."""
    cluster = Cluster(Path.cwd() / CLUSTER_DATA, sections={"log": {"retain_for_audit_bytes": "64MiB"}})
    for broker in cluster:
        broker.configure({"node": {"data": str(broker.directory)}})
    with running_cluster(cluster), contextlib.closing(cluster.connect()) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders", durable=True)
        for number in range(ORDERS):
            channel.basic_publish("", "orders", b"%d" % number)
    assert "proven" in run(commands["audit"], ExitCode.NOT_JUDGED)


def test_every_job_is_run(commands: dict[str, list[str]]) -> None:
    assert set(commands) == {"archive", "rollup", "audit"}
