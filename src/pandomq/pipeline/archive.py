"""`pandomq pipeline archive`: streams to a lake of Parquet files, each row once.

A streaming query reads all streams that match, also those that appear later. Executors write each of its batches to the
lake's staging directory; it becomes part of the lake in one step, and then the job stores the archived offset at the
brokers. After a crash of the job the query continues from its checkpoint: a batch that is in the lake is skipped,
another one is read again, with the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pandomq.data_client.urls import parse_urls
from pandomq.pipeline import plots
from pandomq.pipeline.archive_progress import ArchiveProgress
from pandomq.pipeline.batch_gate import BatchGate
from pandomq.pipeline.delta_log import PARTITIONS
from pandomq.pipeline.lake_contents import contents
from pandomq.pipeline.lake_records import LakeFault, LakeRecord
from pandomq.pipeline.plots import Series
from pandomq.pipeline.summary import Chart, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pandomq.pipeline.lake import Lake

ROWS_PER_BATCH: Final = 1_000_000
BYTES_PER_BATCH: Final = 1024**3
"""A batch exceeds neither limit."""
LOOK_S: Final = 1


@dataclass(frozen=True)
class ArchiveOptions:
    url: str
    pattern: str = ".*"
    """A pattern for the names of streams."""
    every_s: float = 10.0
    """Time between two batches of a continuous archive."""
    once: bool = False
    """End when everything that is available now is archived."""
    name: str = "archive"
    """The name under which the brokers store its progress."""
    allow_loss: bool = False
    """Continue when a stream is deleted, or has dropped messages that were not archived."""
    rows_per_batch: int = ROWS_PER_BATCH


class Archive:
    """One run. `stop` may be called from elsewhere, such as a signal: the current batch is finished, and its errors are
    raised. A second `stop` does not wait."""

    def __init__(self, session: SparkSession, lake: Lake, options: ArchiveOptions) -> None:
        self._session = session
        self._lake = lake
        self._options = options
        self._vhost = parse_urls(options.url).login.vhost
        self._gate = BatchGate(session)
        self._begun_s = time.monotonic()
        self._rates: list[tuple[float, float]] = []
        self._progress = ArchiveProgress(options.url, options.name)
        self.rows = 0
        """Archived by this run."""
        self.files = 0
        self.bytes = 0

    def stop(self) -> None:
        self._gate.close()

    def run(self, advance: Callable[[int], None] = lambda _: None) -> Summary:
        """Calls `advance` with the number of new rows in the lake. Raises the query's exception, and LakeFault."""
        # Statistics of a file's times need times that Parquet can compare.
        self._session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        # Without this each task would sort its rows by their directories.
        self._session.conf.set("spark.sql.maxConcurrentOutputFileWriters", "64")
        with self._lake.writing(), self._progress:
            self._check()
            self._progress.begin(self._lake.files())
            self._wait(self._start(), advance)
        return self._summary()

    def _check(self) -> None:
        """Raises LakeFault if the lake is of another kind."""
        lake = self._lake
        if any(record.batch is not None for record in lake.records) and not lake.checkpoint.exists():
            raise LakeFault(
                f"{lake.checkpoint} is missing: the progress of the archive is not known. Restore it, or archive to "
                "an empty directory"
            )
        others = {file.vhost for file in lake.files()} - {self._vhost}
        if others:
            raise LakeFault(
                f"{lake.directory} has streams of vhost '{others.pop()}': choose another lake for this vhost"
            )

    def _wait(self, query: StreamingQuery, advance: Callable[[int], None]) -> None:
        told = 0
        try:
            while self._gate.waits_for(query, LOOK_S):
                told, more = self.rows, self.rows - told
                advance(more)
        finally:
            self._gate.end(query)
        advance(self.rows - told)

    def _start(self) -> StreamingQuery:
        options = self._options
        source = self._session.readStream.format("pandomq").option("url", options.url)
        source = source.option("streamPattern", options.pattern).option("startingOffsets", "earliest")
        source = source.option("maxOffsetsPerTrigger", options.rows_per_batch).option(
            "maxBytesPerTrigger", BYTES_PER_BATCH
        )
        source = source.option("failOnDataLoss", str(not options.allow_loss).lower())
        writer = source.load().writeStream.foreachBatch(self._take).queryName("archive")
        writer = writer.option("checkpointLocation", str(self._lake.checkpoint))
        if options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(options.every_s * 1000)} milliseconds").start()

    def _take(self, frame: DataFrame, batch: int) -> None:
        with self._gate.batch():
            record = self._lake.record_of(batch)
            if record is None:
                record = self._write(frame, batch)
            self._progress.archived(record.adds)

    def _write(self, frame: DataFrame, batch: int) -> LakeRecord:
        from pyspark.sql import functions

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
        return record

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
        if self._lake.delta is not None:
            facts["version of the Delta table"] = self._lake.delta.version
        facts |= self._progress.facts()
        table = contents(self._lake.files())
        rate = plots.lines([Series("rows a second", self._rates)], "seconds", "rows a second")
        verdict = f"{self.rows:,} rows were added to the lake" if self.rows else "there were no new messages"
        if self._progress.missing:
            verdict += f"; {self._progress.missing:,} messages were deleted before they could be archived"
        return Summary("archive", verdict, True, facts, [table], [Chart("Rows a second, batch by batch", rate)])
