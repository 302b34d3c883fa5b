"""The sink's messages, as ordinary AMQP clients receive them from a real broker; and the errors of impossible
writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.integration.watched_broker import WatchedBroker

from . import ledger

pytestmark = pytest.mark.proves("S2")

ROWS = """
    concat('order ', id) as body,
    if(id % 2 = 0, 'order.even', 'order.odd') as routing_key,
    map('country', if(id % 2 = 0, 'de', null), 'number', cast(id as string)) as headers,
    map('message_id', concat('m', id), 'priority', '3', 'timestamp', '1700000000') as properties
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    broker = WatchedBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    try:
        yield broker
        broker.check()
    finally:
        broker.stop()


@pytest.fixture
def channel(broker: WatchedBroker) -> Iterator[BlockingChannel]:
    with contextlib.closing(pika.BlockingConnection(pika.URLParameters(broker.url))) as connection:
        yield connection.channel()


def write(frame: DataFrame, broker: WatchedBroker, **options: str) -> None:
    frame.write.format("pandomq").options(url=broker.url, **options).mode("append").save()


def test_rows_are_messages_with_all_that_messages_have(
    spark: SparkSession, broker: WatchedBroker, channel: BlockingChannel
) -> None:
    channel.exchange_declare("orders", "topic", durable=True)
    channel.queue_declare("even", durable=True)
    channel.queue_bind("even", "orders", "*.even")
    rows = spark.range(0, 20, 1, 2).selectExpr(*ROWS.split(",\n"))
    with pytest.raises(
        PySparkException, match=r"no queue is bound for a message to exchange 'orders'.*'order.odd': bind"
    ):
        write(rows, broker, exchange="orders")
    write(rows, broker, exchange="orders", contentType="text/plain", unroutable="count")
    for number in range(0, 20, 2):
        method, properties, body = channel.basic_get("even", auto_ack=True)
        assert method is not None and method.exchange == "orders" and method.routing_key == "order.even"
        assert body == f"order {number}".encode()
        assert properties.headers == {"country": "de", "number": str(number)}
        assert (properties.message_id, properties.priority, properties.timestamp) == (f"m{number}", 3, 1_700_000_000)
        assert (properties.content_type, properties.delivery_mode) == ("text/plain", 2)
    assert channel.basic_get("even")[0] is None


def test_a_stream_is_written_by_its_name_and_read_again(
    spark: SparkSession, broker: WatchedBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("letters", durable=True, arguments={"x-queue-type": "stream"})
    frame = spark.range(0, 1000, 1, 3).selectExpr("concat('letter ', id) as body", "map('n', id) as headers")
    write(frame, broker, stream="letters")
    write(frame, broker, stream="letters", writeId="mine", batch="1")
    write(frame, broker, stream="letters", writeId="mine", batch="1")
    expected = [f"letter {number}".encode() for number in range(1000)] * 2
    connect = lambda: pika.BlockingConnection(pika.URLParameters(broker.url))  # noqa: E731
    assert ledger.read_stream(connect, "letters", 2000) == expected
    rows = spark.read.format("pandomq").options(url=broker.url, stream="letters").load().orderBy("offset").collect()
    assert [bytes(row.body) for row in rows] == expected
    assert [row.headers["n"] for row in rows] == [str(number) for number in range(1000)] * 2


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"exchange": "nowhere"}, "no exchange 'nowhere' in vhost '/'"),
        ({"stream": "nothing"}, "no queue 'nothing' in vhost '/'"),
        ({"exchange": "amq.topic", "user": "guest", "password": "a-wrong-one"}, "(?i)refused"),
    ],
)
def test_errors_of_options_are_shown_without_passwords(
    spark: SparkSession, broker: WatchedBroker, options: dict[str, str], complaint: str
) -> None:
    url = f"amqp://127.0.0.1:{broker.port}" if "user" in options else broker.url
    writer = spark.range(0, 5, 1, 1).selectExpr("'' as body").write.format("pandomq").options(**{"url": url, **options})
    with pytest.raises(PySparkException, match=complaint) as raised:
        writer.mode("append").save()
    assert "guest:guest" not in str(raised.value) and "a-wrong-one" not in str(raised.value)
