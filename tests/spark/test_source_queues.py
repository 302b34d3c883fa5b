"""Queues of real brokers as sources: each message once, beside other consumers, through restarts, an expired lease, and
a root that is killed; compared with what was published."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest

from pandomq.data_client.client import DataClient
from tests.integration.cluster.cluster import Cluster
from tests.integration.cluster.cluster import running as running_cluster
from tests.integration.configured_broker import ConfiguredBroker, running
from tests.integration.waiting import wait_until

from .stream_rows import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Connect = Callable[[], pika.BlockingConnection]
PATIENCE_S = 120.0
FAULT = "a bad day"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredBroker]:
    with running(ConfiguredBroker(tmp_path_factory.mktemp("broker") / "b")) as broker:
        yield broker


def publish(connect: Connect, queue: str, numbers: range, *, paused_every: int = 0) -> None:
    with contextlib.closing(connect()) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        for number in numbers:
            channel.basic_publish("", queue, str(number).encode(), pika.BasicProperties(delivery_mode=2))
            if paused_every and number % paused_every == 0:
                time.sleep(0.05)


def ready(connect: Connect, queue: str) -> int:
    with contextlib.closing(connect()) as connection:
        count: int = connection.channel().queue_declare(queue, passive=True).method.message_count
        return count


def query(spark: SparkSession, url: str, queue: str, work: Path, *, trigger: Any = None, **options: str) -> Any:
    reader = spark.readStream.format("pandomq").options(url=url, queue=queue, lease=f"of-{queue}", **options)
    frame = reader.load().selectExpr("stream", "offset", "CAST(body AS STRING) AS text")
    return run(frame, work, **(trigger or {}))


def written(spark: SparkSession, work: Path) -> Counter[str]:
    if not (work / "out" / "_spark_metadata").exists():
        return Counter()
    rows = spark.read.schema("stream STRING, offset BIGINT, text STRING").parquet(str(work / "out")).collect()
    return Counter(row["text"] for row in rows)


def once(numbers: range) -> Counter[str]:
    return Counter(str(number) for number in numbers)


@pytest.mark.proves("S1")
def test_each_message_goes_to_the_query_or_to_a_consumer_and_all_are_acked(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path
) -> None:
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}/"
    publish(broker.connect, "shared", range(400))
    consumed: Counter[str] = Counter()
    with contextlib.closing(broker.connect()) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=10)
        for _ in range(50):
            method, _, body = channel.basic_get("shared")
            assert method is not None
            channel.basic_ack(method.delivery_tag)
            consumed[body.decode()] += 1
        query(spark, url, "shared", tmp_path, maxOffsetsPerTrigger="100").awaitTermination()
        publish(broker.connect, "shared", range(400, 450))
        method, _, body = channel.basic_get("shared", auto_ack=True)
        assert method is not None and not method.redelivered
        consumed[body.decode()] += 1
    # The query is started again from its checkpoint, and goes on.
    query(spark, url, "shared", tmp_path).awaitTermination()
    assert written(spark, tmp_path) + consumed == once(range(450))
    assert ready(broker.connect, "shared") == 0


@pytest.mark.proves("S1")
@pytest.mark.parametrize("lease_timeout", ["1h", pytest.param("20s", marks=pytest.mark.slow)])
def test_messages_of_an_unfinished_query_are_read_again_or_go_back(
    spark: SparkSession, broker: ConfiguredBroker, tmp_path: Path, lease_timeout: str
) -> None:
    """A lease may end by itself, or because a client ends it, which takes less time."""
    url, queue = f"amqp://guest:guest@127.0.0.1:{broker.port}/", f"left-{lease_timeout}"
    options = {"queue": queue, "leaseTimeout": lease_timeout}
    publish(broker.connect, queue, range(30))
    reader = spark.readStream.format("pandomq").options(url=url, lease=f"of-{queue}", **options)
    broken = reader.load().selectExpr("stream", "offset", f"raise_error('{FAULT}') AS text")
    with pytest.raises(Exception, match=FAULT):
        run(broken, tmp_path).awaitTermination()
    # The batch is in the checkpoint, and its messages are in the lease: the same query without its fault reads them.
    assert ready(broker.connect, queue) == 0
    query(spark, url, work=tmp_path, **options).awaitTermination()
    assert written(spark, tmp_path) == once(range(30))
    # Left for longer than the lease lasts they are in the queue again, and a query does not go on in silence.
    publish(broker.connect, queue, range(30, 40))
    with pytest.raises(Exception, match=FAULT):
        run(broken, tmp_path).awaitTermination()
    if lease_timeout == "1h":
        with DataClient(url) as client:
            client.end_lease(queue, f"of-{queue}")
    wait_until(lambda: ready(broker.connect, queue) == 10, "what was leased is back", PATIENCE_S)
    with pytest.raises(Exception, match="has expired"):
        query(spark, url, work=tmp_path, **options).awaitTermination()
    query(spark, url, work=tmp_path, **options, failOnDataLoss="false").awaitTermination()
    assert written(spark, tmp_path) == once(range(40))


@pytest.mark.timeout(500)
@pytest.mark.proves("S1", "S3")
def test_a_query_of_a_queue_outlives_the_root(spark: SparkSession, tmp_path: Path) -> None:
    with running_cluster(Cluster(tmp_path / "brokers")) as brokers:
        publish(brokers.connect, "jobs", range(200))
        every = {"processingTime": "0 seconds"}
        started = query(
            spark, ",".join(brokers.urls), "jobs", tmp_path, trigger=every, maxOffsetsPerTrigger="50", leaseTimeout="5m"
        )

        def has(count: int) -> bool:
            assert started.isActive, started.exception()
            return written(spark, tmp_path).total() >= count

        wait_until(lambda: has(50), "the first batch", PATIENCE_S)
        killed = brokers.root
        killed.kill()
        brokers.wait_for_root(other_than=killed)
        publish(brokers.connect, "jobs", range(200, 300))
        wait_until(lambda: has(300), "all batches", PATIENCE_S)
        started.stop()
        assert written(spark, tmp_path) == once(range(300))
