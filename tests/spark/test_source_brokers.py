"""Reads from real brokers: what AMQP clients have published; users' rights, retention; both ways by TLS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest

from tests.integration.certificates import Authority
from tests.integration.configured_broker import ConfiguredBroker, quick_hash, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCS = Path(__file__).parents[2] / "docs"
STREAM = {"x-queue-type": "stream"}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[ConfiguredBroker]:
    server = authority.server()
    tls = {"listen": "127.0.0.1:0", "certificate": server.certificate, "key": server.key}
    configured = ConfiguredBroker(tmp_path_factory.mktemp("broker") / "b", node={"http": "127.0.0.1:0"}, node_tls=tls)
    with running(configured) as broker:
        yield broker


def plain_url(broker: ConfiguredBroker, user: str = "guest") -> str:
    return f"amqp://{user}:guest@127.0.0.1:{broker.port}/"


def read(spark: SparkSession, url: str, **options: str) -> DataFrame:
    return spark.read.format("pandomq").option("url", url).options(**options).load()


def publish(
    broker: ConfiguredBroker, name: str, bodies: list[bytes], arguments: dict[str, Any] | None = None, **properties: Any
) -> None:
    with broker.connect() as connection:
        channel = connection.channel()
        channel.queue_declare(name, durable=True, arguments=STREAM | (arguments or {}))
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish("", name, body, pika.BasicProperties(**properties))


@pytest.mark.proves("S1")
def test_the_tutorial_works_when_pasted(
    spark: SparkSession, broker: ConfiguredBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (DOCS / "spark.md").read_text()
    tutorial = text[text.index("## Tutorial") : text.index("## Columns")]
    pasted: dict[str, Any] = {"__name__": "tutorial"}
    for block in re.findall(r"```python\n(.*?)```", tutorial, re.DOTALL):
        exec(block.replace("amqp://guest:guest@localhost:5672/", plain_url(broker)), pasted)
    shown = capfd.readouterr().out
    assert re.search(r"\|\s*de\|\s*16683\.3", shown), shown
    assert re.search(r"\|\s*1000\|\s*999\|", shown), shown
    assert re.search(r"\|\s*500\|\s*500\|", shown), shown


@pytest.mark.proves("S1")
def test_spark_reads_the_messages_that_clients_publish(spark: SparkSession, broker: ConfiguredBroker) -> None:
    bodies = [json.dumps({"id": at}).encode() for at in range(300)]
    publish(broker, "real.a", bodies, headers={"kind": "test", "level": 3}, content_type="application/json", priority=1)
    rows = read(spark, plain_url(broker), stream="real.a", minPartitions="3").orderBy("offset").collect()
    assert [(row["offset"], bytes(row["body"])) for row in rows] == list(enumerate(bodies))
    assert {row["routing_key"] for row in rows} == {"real.a"}
    assert rows[0]["headers"] == {"kind": "test", "level": "3"}
    assert rows[0]["properties"] == {"content_type": "application/json", "priority": "1"}
    times = [row["time"] for row in rows]
    assert times == sorted(times)
    # A point in time is an offset.
    later = read(spark, plain_url(broker), stream="real.a", startingTimestamp=times[200].isoformat()).collect()
    assert sorted(row["offset"] for row in later) == [row["offset"] for row in rows if row["time"] >= times[200]]


@pytest.mark.proves("S1", "S2")
def test_source_and_sink_by_tls_with_a_users_rights(
    spark: SparkSession, broker: ConfiguredBroker, authority: Authority, tmp_path: Path
) -> None:
    publish(broker, "real.tls", [b"%d" % number for number in range(20)])
    publish(broker, "real.tls.copy", [])
    broker.define(
        users=[{"name": name, "tags": "", **quick_hash(f"pass-of-{name}")} for name in ("writer", "reader")],
        permissions=[
            {"user": "writer", "vhost": "/", "configure": "", "write": r"amq\.default", "read": r"real\.tls"},
            {"user": "reader", "vhost": "/", "configure": "", "write": "", "read": r"real\.tls.*"},
        ],
    )
    place = f"localhost:{broker.tls_port}/?cacertfile={authority.certificate}"
    writer, reader = (f"amqps://{name}:pass-of-{name}@{place}" for name in ("writer", "reader"))
    rows = spark.readStream.format("pandomq").options(url=writer, stream="real.tls", startingOffsets="earliest").load()
    copy = rows.select("body").writeStream.format("pandomq").options(url=writer, stream="real.tls.copy")
    copy = copy.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    copy.start().awaitTermination()
    copied = read(spark, reader, stream="real.tls.copy").orderBy("offset")
    assert [bytes(row["body"]) for row in copied.collect()] == [b"%d" % number for number in range(20)]
    refusal = "write access to any exchange in vhost '/' refused for user 'reader'"
    with pytest.raises(Exception, match=refusal) as raised:
        copied.select("body").write.format("pandomq").options(url=reader, stream="real.tls").mode("append").save()
    assert "pass-of-" not in str(raised.value)
    with pytest.raises(Exception, match="is not trusted"):
        read(spark, reader.partition("?")[0], stream="real.tls", timeout="20s").count()


def test_rights_are_those_of_amqp(spark: SparkSession, broker: ConfiguredBroker) -> None:
    publish(broker, "real.open", [b"x"] * 5)
    publish(broker, "real.secret", [b"x"] * 5)
    broker.define(
        users=[{"name": "eve", "tags": "", **quick_hash("guest")}],
        permissions=[{"user": "eve", "vhost": "/", "configure": "", "write": "", "read": "real.open"}],
    )
    url = plain_url(broker, "eve")
    assert read(spark, url, stream="real.open").count() == 5
    with pytest.raises(Exception, match=r"real\.secret"):
        read(spark, url, stream="real.secret").count()
    # A pattern finds what may be read, and no more.
    assert {row["stream"] for row in read(spark, url, streamPattern="real.*").collect()} == {"real.open"}
    with pytest.raises(Exception, match=r"(?i)refused|not allowed|may not"):
        read(spark, url.replace("eve:guest", "eve:wrong"), stream="real.open", timeout="20s").count()


def test_the_error_for_offsets_dropped_by_retention_names_them(spark: SparkSession, broker: ConfiguredBroker) -> None:
    limits = {"x-max-length-bytes": 2_000_000, "x-stream-max-segment-size-bytes": 500_000}
    publish(broker, "real.short", [bytes(50_000)] * 200, limits)
    offsets = [row["offset"] for row in read(spark, plain_url(broker), stream="real.short").select("offset").collect()]
    assert 0 < min(offsets) and max(offsets) == 199
    early = {"stream": "real.short", "startingOffsets": '{"real.short": 0}'}
    with pytest.raises(Exception, match=f"begins at offset {min(offsets)}, after the wanted offset 0"):
        read(spark, plain_url(broker), **early).count()
    assert read(spark, plain_url(broker), failOnDataLoss="false", **early).count() == len(offsets)
