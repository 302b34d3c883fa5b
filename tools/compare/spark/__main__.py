"""`make bench-spark`: Spark reads and writes streams of a broker; writes docs/spark.json and docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pandomq.bench import process
from pandomq.bench.broker_process import PandoBroker
from pandomq.bench.client.session import LoadSession
from pandomq.bench.client.url import parse_url
from pandomq.bench.client.wire import QUEUE_DECLARE_OK, queue_declare
from pandomq.bench.measurements.long_queue import QUEUE, LongQueue, load_of
from pandomq.spark.java import use_java
from tools.compare.peers import documents
from tools.compare.peers.machine import this_machine
from tools.compare.peers.other_work import OtherWork
from tools.compare.spark.figures import (
    ALL_COLUMNS,
    BODIES,
    DECODED,
    EMPTY_SINK,
    EMPTY_SOURCE,
    SOURCE,
    SOURCE_AND_SINK,
    SPARKS_OWN,
    WITHOUT_MAPS,
    SparkFigures,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOCS: Final = Path(__file__).parents[3] / "docs"
BODY_BYTES: Final = 1024
COLUMNS: Final = {
    ALL_COLUMNS: None,
    WITHOUT_MAPS: "stream STRING, offset BIGINT, time TIMESTAMP, exchange STRING, routing_key STRING, body BINARY",
    BODIES: "offset BIGINT, body BINARY",
}
BATCHES: Final = 60
BATCHES_LEFT_OUT: Final = 10
"""The number of batches that do not count at the beginning of a query, because they compile."""
BATCH_ROWS: Final = 100
STREAM: Final = {"x-queue-type": "stream"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compare.spark", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="Number of messages in the stream that is read (default 1,000,000)."
    )
    parser.add_argument("--rounds", type=int, default=3, help="Number of rounds, after a warm-up round (default 3).")
    parser.add_argument(
        "--write-rows", type=int, default=300_000, help="Number of rows to write per round (default 300,000)."
    )
    parser.add_argument("--no-sink", action="store_true", help="Measure reads only.")
    parser.add_argument(
        "--out", type=Path, default=DOCS, help="Directory for spark.json and benchmarks.md (default docs/)."
    )
    parser.add_argument("--page", action="store_true", help="Only write the page again from the JSON file.")
    options = parser.parse_args()
    if not options.page:
        figures = measure(options)
        documents.write_figures(options.out / documents.SPARK, figures)
        sys.stderr.write(json.dumps(msgspec.to_builtins(figures), indent=1) + "\n")
    sys.stdout.write(documents.write_page(options.out, DOCS))
    return 0


def measure(options: argparse.Namespace) -> SparkFigures:
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as place:
        work = Path(place)
        broker = PandoBroker("PandoMQ", work / "broker", plain=False)
        broker.start()
        others = OtherWork()
        try:
            amplification = _fill(broker, options.rows)
            with _session(work) as spark:
                bench = Bench(spark, broker, work, options)
                read, broker_cpu_us = bench.reads()
                write = [] if options.no_sink else bench.writes()
                batch_ms = bench.micro_batches()
                version = spark.version
        finally:
            broker.close()
        return SparkFigures(
            day=datetime.now(UTC).date().isoformat(),
            versions={"broker": broker.version, "spark": f"Spark {version}"},
            machine=this_machine(),
            others_share=others.share(),
            rows=options.rows,
            read=read,
            write=write,
            batch_ms=batch_ms,
            broker_cpu_us=broker_cpu_us,
            disk_bytes_per_byte=amplification,
        )


def _fill(broker: PandoBroker, rows: int) -> float:
    """Fills a stream with messages of 1 KiB; returns how many bytes the broker wrote for each byte of them."""
    before = _written_bytes(broker.pid)
    load = msgspec.structs.replace(load_of("persistent", broker.url, BODY_BYTES), queue_arguments=dict(STREAM))
    LongQueue(load, "persistent", rows, broker.pid)
    return (_written_bytes(broker.pid) - before) / (rows * BODY_BYTES)


def _written_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/io").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "write_bytes":
            return int(value)
    raise RuntimeError("the operating system does not report what a process has written")


@contextmanager
def _session(work: Path) -> Iterator[SparkSession]:
    use_java()
    sources = str(Path(documents.__file__).parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sources, os.environ.get("PYTHONPATH")]))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_LOCAL_DIRS"] = str(work)
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("bench-spark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.streaming.numRecentProgressUpdates", str(10 * BATCHES))
        .config(
            "spark.sql.streaming.checkpointFileManagerClass",
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
        )
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def _empty() -> Any:
    """Measures the time that Spark itself needs for a source and a sink in Python."""
    import pyarrow as pa
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        InputPartition,
        WriterCommitMessage,
    )

    class Reader(DataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802
            return {"rows": 0}

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
            return {"rows": start["rows"] + BATCH_ROWS}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [InputPartition(start["rows"])]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            yield pa.RecordBatch.from_pydict({"body": pa.array([bytes(BODY_BYTES)] * BATCH_ROWS, pa.binary())})

        def commit(self, end: dict[str, int]) -> None:
            pass

    class Writer(DataSourceStreamWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            for _ in iterator:
                pass
            return WriterCommitMessage()

        def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
            pass

        def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
            pass

    class Empty(DataSource):
        @classmethod
        def name(cls) -> str:
            return "empty"

        def schema(self) -> str:
            return "body BINARY"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            return Reader()

        def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
            return Writer()

    return Empty


class Bench:
    def __init__(self, spark: SparkSession, broker: PandoBroker, work: Path, options: argparse.Namespace) -> None:
        self._spark = spark
        self._broker = broker
        self._work = work
        self._options = options
        self._made = 0

    def _stream(self) -> str:
        """Returns a new, empty stream."""
        self._made += 1
        name = f"bench.spark.{self._made}"
        with LoadSession(parse_url(self._broker.url)) as session:
            session.call(queue_declare(1, name, STREAM, durable=True), QUEUE_DECLARE_OK)
        return name

    def _reader(self, columns: str | None, **options: str) -> DataFrame:
        reader = self._spark.read.format("pandomq").option("url", self._broker.url).options(**options)
        return (reader if columns is None else reader.schema(columns)).load()

    def reads(self) -> tuple[dict[str, list[float]], float]:
        """Returns the rows per second, and the broker's processor time per row."""
        rates: dict[str, list[float]] = {kind: [] for kind in COLUMNS}
        cpu_us = []
        for number in range(self._options.rounds + 1):
            for kind, columns in COLUMNS.items():
                before_s = process.cpu_seconds(self._broker.pid)
                rate = self._timed(self._reader(columns, stream=QUEUE, minPartitions="2"), self._options.rows)
                if number:
                    rates[kind].append(rate)
                    cpu_us.append((process.cpu_seconds(self._broker.pid) - before_s) * 1e6 / self._options.rows)
        rates[DECODED] = self._decoded()
        return rates, median(cpu_us)

    def _timed(self, frame: DataFrame, rows: int) -> float:
        begun_s = time.monotonic()
        frame.write.format("noop").mode("overwrite").save()
        return rows / (time.monotonic() - begun_s)

    def _decoded(self) -> list[float]:
        if self._options.no_sink:
            return []
        name = self._stream()
        rows = self._options.write_rows
        text = f"""to_json(named_struct('id', id, 'name', repeat('x', {BODY_BYTES - 60}), 'amount', id / 7)) AS body"""
        self._write(self._spark.range(rows).selectExpr(text), name)
        found = []
        for _ in range(self._options.rounds + 1):
            frame = self._reader(None, stream=name, bodySchema="id BIGINT, name STRING, amount DOUBLE")
            found.append(self._timed(frame.select("offset", "value", "malformed"), rows))
        return found[1:]

    def writes(self) -> list[float]:
        rows = self._options.write_rows
        source = self._spark.range(0, rows, 1, 2).selectExpr(f"CAST(repeat('x', {BODY_BYTES}) AS BINARY) AS body")
        found = []
        for _ in range(self._options.rounds + 1):
            name = self._stream()
            begun_s = time.monotonic()
            self._write(source, name)
            found.append(rows / (time.monotonic() - begun_s))
        return found[1:]

    def _write(self, frame: DataFrame, name: str) -> None:
        options = {"url": self._broker.url, "stream": name}
        frame.write.format("pandomq").options(**options).mode("append").save()

    def micro_batches(self) -> dict[str, list[float]]:
        self._spark.dataSource.register(_empty())
        queries = {SPARKS_OWN: self._own, EMPTY_SOURCE: self._empty_source, SOURCE: self._source}
        if not self._options.no_sink:
            queries |= {EMPTY_SINK: self._own_with_empty_sink, SOURCE_AND_SINK: self._source_and_sink}
        found: dict[str, list[float]] = {name: [] for name in queries}
        for _ in range(self._options.rounds):
            for name, start in queries.items():
                found[name].append(self._median_ms(start()))
        return found

    def _own(self) -> Any:
        return self._started(self._rate().writeStream.format("noop"))

    def _empty_source(self) -> Any:
        return self._started(self._spark.readStream.format("empty").load().writeStream.format("noop"))

    def _own_with_empty_sink(self) -> Any:
        return self._started(self._rate().writeStream.format("empty"))

    def _rate(self) -> DataFrame:
        return self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", str(BATCH_ROWS)).load()

    def _source(self) -> Any:
        return self._started(self._backlog().writeStream.format("noop"))

    def _source_and_sink(self) -> Any:
        writer = self._backlog().select("body").writeStream.format("pandomq").option("url", self._broker.url)
        return self._started(writer.option("stream", self._stream()))

    def _backlog(self) -> DataFrame:
        reader = self._spark.readStream.format("pandomq").option("url", self._broker.url).option("stream", QUEUE)
        return reader.options(startingOffsets="earliest", maxOffsetsPerTrigger=str(BATCH_ROWS)).load()

    def _started(self, writer: Any) -> Any:
        self._made += 1
        checkpoint = str(self._work / f"checkpoint.{self._made}")
        return writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()

    def _median_ms(self, query: Any) -> float:
        def batches() -> list[float]:
            return [
                progress["durationMs"]["triggerExecution"]
                for progress in query.recentProgress
                if progress["numInputRows"]
            ]

        while len(batches()) < BATCHES:
            if query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            time.sleep(0.2)
        query.stop()
        return median(batches()[BATCHES_LEFT_OUT:BATCHES])


if __name__ == "__main__":
    sys.exit(main())
