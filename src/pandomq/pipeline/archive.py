"""`pandomq pipeline archive`: streams to a lake of Parquet files, each row once.

A streaming query reads all streams that match, also those that appear later. Each of its batches is written to the
lake's staging directory by executors, and becomes part of the lake in one step. If the job dies, the query goes on from
its checkpoint: a batch that the lake has is passed over, one that it has not is read again, the same rows.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pandomq.data_client.urls import parse_urls
from pandomq.pipeline import plots
from pandomq.pipeline.plots import Series
from pandomq.pipeline.summary import Plot, Summary, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pandomq.pipeline.lake import Lake, LakeFile

ROWS_PER_BATCH: Final = 1_000_000
BYTES_PER_BATCH: Final = 1024**3
"""A batch has no more than either."""
LOOK_S: Final = 1
PARTITIONS: Final = ["vhost", "stream", "date"]


@dataclass(frozen=True)
class Wish:
    url: str
    pattern: str = ".*"
    """Of the names of streams."""
    every_s: float = 10.0
    """Between two batches of an archive that goes on."""
    once: bool = False
    """End when all that is there now is archived."""


class Archive:
    """One run. `stop` may be called from elsewhere, such as a signal."""

    def __init__(self, session: SparkSession, lake: Lake, wish: Wish) -> None:
        self._session = session
        self._lake = lake
        self._wish = wish
        self._vhost = parse_urls(wish.url).login.vhost
        self._stopped = threading.Event()
        self._begun_s = time.monotonic()
        self._rates: list[tuple[float, float]] = []
        self.rows = 0
        """Archived by this run."""
        self.files = 0
        self.bytes = 0

    def stop(self) -> None:
        self._stopped.set()

    def run(self, advance: Callable[[int], None] = lambda _: None) -> Summary:
        """`advance` hears how many rows more are in the lake. Raises what the query died of."""
        # Statistics of a file's times need times that Parquet can compare.
        self._session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        # Without this each task would sort its rows by their directories.
        self._session.conf.set("spark.sql.maxConcurrentOutputFileWriters", "64")
        with self._lake.writing():
            query = self._start()
            told = 0
            while query.isActive and not self._stopped.is_set():
                query.awaitTermination(LOOK_S)
                told, more = self.rows, self.rows - told
                advance(more)
            query.stop()
            failure = query.exception()
            if failure is not None and not self._stopped.is_set():
                raise failure
        return self._summary()

    def _start(self) -> StreamingQuery:
        source = self._session.readStream.format("pandomq").option("url", self._wish.url)
        source = source.option("streamPattern", self._wish.pattern).option("startingOffsets", "earliest")
        source = source.option("maxOffsetsPerTrigger", ROWS_PER_BATCH).option("maxBytesPerTrigger", BYTES_PER_BATCH)
        writer = source.load().writeStream.foreachBatch(self._take).queryName("archive")
        writer = writer.option("checkpointLocation", str(self._lake.checkpoint))
        if self._wish.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(self._wish.every_s * 1000)} milliseconds").start()

    def _take(self, frame: DataFrame, batch: int) -> None:
        from pyspark.sql import functions

        if self._lake.has_batch(batch):
            return
        begun_s = time.monotonic()
        dated = frame.withColumn("vhost", functions.lit(self._vhost)).withColumn("date", functions.to_date("time"))
        dated.write.partitionBy(*PARTITIONS).mode("overwrite").parquet(str(self._lake.staging))
        record = self._lake.take_in(batch)
        rows = sum(file.rows for file in record.adds)
        now_s = time.monotonic()
        self._rates.append((now_s - self._begun_s, rows / (now_s - begun_s)))
        self.files += len(record.adds)
        self.bytes += sum(file.bytes for file in record.adds)
        self.rows += rows

    def _summary(self) -> Summary:
        taken_s = time.monotonic() - self._begun_s
        facts: dict[str, object] = {
            "lake": str(self._lake.directory),
            "rows": self.rows,
            "files": self.files,
            "bytes": self.bytes,
            "seconds": round(taken_s, 1),
            "rows a second": round(self.rows / taken_s),
            "rows in the lake": sum(file.rows for file in self._lake.files()),
        }
        table = contents(self._lake.files())
        rate = plots.lines([Series("rows a second", self._rates)], "seconds", "rows a second")
        verdict = f"{self.rows:,} rows more are in the lake" if self.rows else "there was nothing new"
        return Summary("archive", verdict, True, facts, [table], [Plot("Rows a second, batch by batch", rate)])


def contents(files: list[LakeFile]) -> Table:
    """What a lake holds, by stream."""
    streams: dict[tuple[str, str], list[LakeFile]] = defaultdict(list)
    for file in files:
        streams[file.vhost, file.stream].append(file)
    rows = [
        (
            vhost,
            stream,
            sum(file.rows for file in some),
            min(file.first_offset for file in some),
            max(file.last_offset for file in some),
            len(some),
            sum(file.bytes for file in some),
        )
        for (vhost, stream), some in sorted(streams.items())
    ]
    return Table("Streams", ("vhost", "stream", "rows", "first offset", "last offset", "files", "bytes"), rows)
