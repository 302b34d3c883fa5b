"""Audits of brokers that are at work meanwhile, and of two of which one was promoted by force."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest
from pika.exceptions import AMQPError

from pandomq.ledger import Ledger
from pandomq.pipeline.audit.findings import Promise, Verdict
from pandomq.pipeline.audit.job import Audit, AuditOptions
from pandomq.pipeline.audit.verdict import summarize
from tests.integration.cluster.cluster import Cluster, running
from tests.integration.cluster.process import ClusterBroker
from tests.integration.waiting import wait_until
from tests.spark.pipeline.audit_world import PERSISTENT, QUEUE, SMALL_FILES, consume, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TOLERANCE_MS = 500
"""There is one clock here."""
ROUND = 20
LONG_LEASE: Mapping[str, Mapping[str, object]] = {
    "log": {"segment_bytes": "256KiB"},
    "cluster": {"lease_ms": 10_000, "access": "redirect"},
}
UNSEEN = [f"unseen-{number}" for number in range(7)]


class Working(threading.Thread):
    """Rounds of some work, one after the other, until it is to end."""

    def __init__(self, work: Callable[[int], None]) -> None:
        super().__init__()
        self._work = work
        self._ended = threading.Event()
        self._failure: BaseException | None = None

    def run(self) -> None:
        try:
            for number in itertools.count():
                if self._ended.is_set():
                    return
                self._work(number)
        except BaseException as failure:
            self._failure = failure

    def end(self) -> None:
        self._ended.set()
        self.join(120)
        assert not self.is_alive() and self._failure is None, self._failure


@contextlib.contextmanager
def clients(cluster: Cluster, ledgers: tuple[Path, Path]) -> Iterator[None]:
    """A publisher and a consumer, each with its ledger, for as long as the block lasts."""
    publisher = Working(lambda at: publish(cluster, ledgers[0], range(at * ROUND, (at + 1) * ROUND)))
    consumer = Working(lambda _: consume(cluster, ledgers[1], ROUND))
    publisher.start()
    consumer.start()
    try:
        yield
    finally:
        # The consumer waits for messages.
        consumer.end()
        publisher.end()


@pytest.mark.proves("S6")
def test_brokers_that_are_at_work(spark: SparkSession, tmp_path: Path) -> None:
    """Files grow, are finished and put aside while they are read: the report is about the time before."""
    ledgers = (tmp_path / "publisher.jsonl", tmp_path / "consumer.jsonl")
    with running(Cluster(tmp_path / "brokers", sections=SMALL_FILES)) as cluster:
        with contextlib.closing(cluster.connect()) as connection:
            channel = connection.channel()
            channel.queue_declare(QUEUE, durable=True)
            channel.queue_declare("kept", durable=True)
            channel.exchange_declare("events", "topic", durable=True)
            channel.queue_bind("kept", "events", "e.#")
        stores = [broker.data for broker in cluster]
        judged = 0
        with clients(cluster, ledgers):
            wait_until(lambda: all(path.exists() and path.stat().st_size > 20_000 for path in ledgers), "ledgers", 120)
            for _ in range(3):
                before_ms = round(time.time() * 1000)
                audit = Audit(spark, AuditOptions(stores, ledgers, tolerance_ms=TOLERANCE_MS))
                audit.run()
                assert not audit.findings.refuted, audit.findings.statements
                statement = audit.findings.of(Promise.CONFIRMED)
                assert statement.verdict is Verdict.PROVEN and statement.judged > judged, statement
                judged = statement.judged
                assert before_ms - TOLERANCE_MS <= audit.account.judged[1] <= before_ms - TOLERANCE_MS + 10_000
                assert " to " in str(summarize(audit).facts["ledgers judged"])
                assert audit.findings.of(Promise.REPLICAS).judged > 0


@pytest.mark.proves("S6")
def test_messages_cut_off_by_a_forced_promotion_are_reported(spark: SparkSession, tmp_path: Path) -> None:
    ledgers = (tmp_path / "publisher.jsonl", tmp_path / "unseen.jsonl")
    with running(Cluster(tmp_path / "brokers", size=2, sections=LONG_LEASE)) as cluster:
        dead, survivor = cluster.root, cluster.backups[0]
        with contextlib.closing(cluster.connect()) as connection:
            connection.channel().queue_declare(QUEUE, durable=True)
            connection.channel().exchange_declare("events", "topic", durable=True)
            connection.channel().queue_bind(QUEUE, "events", "e.#")
        publish(cluster, ledgers[0], range(30))
        publish_and_die(dead, survivor, ledgers[1])
        # The messages under way to the survivor are lost, too.
        survivor.kill()
        survivor.start()
        promote(cluster, survivor, dead)
        assert cluster.wait_for_root() is survivor
        publish(cluster, ledgers[0], range(30, 60))
        dead.start()
        cluster.wait_for_role(dead.name, "learner")
        dead.wait_for_line("kept aside|set aside")
        for broker in cluster:
            broker.terminate()
        for broker in cluster:
            broker.wait_for_end()
    audit = Audit(spark, AuditOptions([dead.data, survivor.data], ledgers))
    audit.run()
    assert not audit.findings.refuted, audit.findings.statements
    assert sorted(one.message for one in audit.findings.cut_off) == UNSEEN
    assert {(one.broker.partition(" ")[0], one.queue) for one in audit.findings.cut_off} == {(dead.name, QUEUE)}
    assert audit.findings.of(Promise.CONFIRMED).judged == 60
    assert "Cut off by force: 7" in summarize(audit).to_json()


def publish_and_die(root: ClusterBroker, backup: ClusterBroker, path: Path) -> None:
    """The root has them on its disk, and no other broker has."""
    connection = pika.BlockingConnection(root.parameters(heartbeat=0))
    channel = connection.channel()
    channel.queue_declare(QUEUE, passive=True)
    backup.freeze()
    with Ledger(path) as ledger:
        for message in UNSEEN:
            ledger.published(message, routing_key=QUEUE)
            properties = pika.BasicProperties(delivery_mode=PERSISTENT, message_id=message)
            channel.basic_publish("", QUEUE, b"", properties)

    def on_disk() -> bool:
        return any(UNSEEN[-1].encode() in file.read_bytes() for file in root.data.rglob("segment-*.log"))

    wait_until(on_disk, "all of it on the root's disk")
    root.kill()
    # The connection went with it.
    with contextlib.suppress(AMQPError, OSError):
        connection.close()


def promote(cluster: Cluster, survivor: ClusterBroker, dead: ClusterBroker) -> None:
    """Uses the cluster's key: a broker that has been started alone knows no users. Repeats it until it is done."""
    words = ["promote", survivor.name, "--force", "--dead", dead.name, "--yes"]
    words += ["--url", survivor.http_url, "--key-file", str(cluster.key_file)]
    command = [sys.executable, "-m", "pandomq.cli.main", *words]
    wait_until(lambda: subprocess.run(command, timeout=120).returncode == 0, "the promotion", 120)
