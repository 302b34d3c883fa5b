"""`pandomq pipeline rollup`: the streaming query, and Spark's work in each step.

A step takes the trace stream's messages since the last step. The driver gets the heads of its batches and decides which
count; then executors add up events and, by windows and subjects, the earlier sums; closed windows become results. A
step whose number was decided is skipped when the query runs it again after a crash.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet

from pandomq.data_client.urls import parse_urls
from pandomq.pipeline.batch_gate import BatchGate
from pandomq.pipeline.rollup import results, sums
from pandomq.pipeline.rollup.batch_filter import HEAD_DDL, BatchHead, Decision, decide, head_of, with_late
from pandomq.pipeline.rollup.gathering import LATE, Gatherer
from pandomq.pipeline.rollup.newest import newest
from pandomq.pipeline.rollup.results import start_of
from pandomq.pipeline.rollup.steps import RollupFiles, RollupStep
from pandomq.pipeline.rollup.story import summarize
from pandomq.pipeline.rollup.sums import MICROS, SHORTEST_S
from pandomq.pipeline.rollup.views import VhostStory
from pandomq.trace_form import TRACE_STREAM, decode_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pandomq.pipeline.summary import Summary

BYTES_PER_STEP: Final = 512 * 1024**2
"""Bytes of the trace stream; some ten million events."""
LATENESS_S: Final = 30.0
LOOK_S: Final = 1
COLUMNS: Final = "offset BIGINT, time TIMESTAMP, body BINARY"

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class RollupOptions:
    urls: tuple[str, ...]
    """One for each vhost."""
    every_s: float = 10.0
    """Time between two steps of a continuous rollup."""
    once: bool = False
    """End when everything that is available now is rolled up."""
    lateness_s: float = LATENESS_S
    """How long a window waits for events after the first one that is later than its end."""


class Rollup:
    """One run. `stop` may be called from elsewhere, such as a signal: steps that have begun are finished. A second
    `stop` does not wait."""

    def __init__(self, session: SparkSession, lake: Path, options: RollupOptions) -> None:
        """Raises LakeFault, BadUrl."""
        self.vhosts = [VhostRollup(session, lake, url, options) for url in options.urls]

    def stop(self) -> None:
        for vhost in self.vhosts:
            vhost.gate.close()

    def run(self, advance: Callable[[int], None] = lambda _: None) -> None:
        """Calls `advance` with the number of newly rolled up events. Raises LakeFault, and a query's exception."""
        told = 0
        with ExitStack() as stack:
            for vhost in self.vhosts:
                stack.enter_context(vhost.files.writing())
            queries = []
            for vhost in self.vhosts:
                queries.append(vhost.start())
                stack.callback(vhost.gate.end, queries[-1])
            goes_on = True
            while goes_on:
                pairs = zip(self.vhosts, queries, strict=True)
                waits = [vhost.gate.waits_for(query, LOOK_S) for vhost, query in pairs]
                goes_on = any(waits)
                events = sum(vhost.events for vhost in self.vhosts)
                told, more = events, events - told
                advance(more)
                if any(query.exception() is not None for query in queries):
                    # If one of them ends, the others end as well.
                    for vhost in self.vhosts:
                        vhost.gate.close(hurries=False)

    def summary(self, window: str) -> Summary:
        """For the newest windows of this length, closed and open, including those of earlier runs."""
        stories = [vhost.story(window) for vhost in self.vhosts]
        events, busy_s = sum(vhost.events for vhost in self.vhosts), sum(vhost.busy_s for vhost in self.vhosts)
        facts: dict[str, object] = {
            "lake": str(self.vhosts[0].files.root.parent),
            "events": events,
            "steps": sum(vhost.steps for vhost in self.vhosts),
            "seconds": round(busy_s, 1),
            "events a second": round(events / busy_s) if busy_s else 0,
        }
        return summarize(stories, window, facts, events)


class VhostRollup:
    def __init__(self, session: SparkSession, lake: Path, url: str, options: RollupOptions) -> None:
        self._session = session
        self._url = url
        self._options = options
        self.files = RollupFiles(lake, parse_urls(url).login.vhost)
        self.gate = BatchGate(session)
        self.events = 0
        """Events rolled up by this run."""
        self.busy_s = 0.0
        """The time that took."""
        self.steps = 0

    def start(self) -> StreamingQuery:
        cores = self._session.sparkContext.defaultParallelism
        # Spark would cut even small sums into two hundred parts.
        self._session.conf.set("spark.sql.shuffle.partitions", str(cores))
        source = self._session.readStream.format("pandomq").option("url", self._url).schema(COLUMNS)
        # A pattern, since the stream may not be there yet.
        source = source.option("streamPattern", re.escape(TRACE_STREAM)).option("startingOffsets", "earliest")
        source = source.option("maxBytesPerTrigger", BYTES_PER_STEP).option("minPartitions", cores)
        # Batches that retention removed before they were rolled up are visible as missing numbers.
        source = source.option("failOnDataLoss", "false")
        writer = source.load().writeStream.foreachBatch(self._take).queryName(f"rollup of {self.files.vhost}")
        writer = writer.option("checkpointLocation", str(self.files.checkpoint))
        if self._options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(self._options.every_s * 1000)} milliseconds").start()

    def story(self, window: str) -> VhostStory:
        knowledge = self.files.step.knowledge
        shown = newest(self._session, self.files, window)
        return VhostStory(self.files.vhost, shown, self.files.stories(), knowledge.account, knowledge.watermark_us)

    def _take(self, frame: DataFrame, batch: int) -> None:
        with self.gate.batch():
            if batch > self.files.step.batch:
                self._take_step(frame, batch)

    def _take_step(self, frame: DataFrame, batch: int) -> None:
        before = self.files.step
        begun_s = time.monotonic()
        heads = [BatchHead(*row) for row in frame.mapInArrow(heads_of, HEAD_DDL).collect()]
        decision = decide(heads, before.knowledge, round(self._options.lateness_s * MICROS))
        number = before.number + 1
        late = self._add_up(frame, decision)
        self.files.decide(RollupStep(number, batch, with_late(decision.knowledge, late)), decision.stories)
        self.events += decision.knowledge.account.events - before.knowledge.account.events
        self.busy_s += time.monotonic() - begun_s
        self.steps += 1

    def _add_up(self, frame: DataFrame, decision: Decision) -> list[tuple[int, int]]:
        """Writes the sums of windows that stay open, and the results of the others; returns the late events."""
        before_us, now_us = self.files.step.knowledge.watermark_us, decision.knowledge.watermark_us
        whole = frame.mapInArrow(partial(gathered, decision.skipped, before_us), sums.DDL)
        if self.files.open_sums().is_dir():
            open_before = frame.sparkSession.read.schema(sums.DDL).parquet(str(self.files.open_sums()))
            whole = whole.unionByName(open_before.where(f"subject != '{LATE}'"))
        whole = whole.repartition(*sums.TOGETHER).mapInArrow(settled, sums.DDL)
        is_closed = f"subject != '{LATE}' AND start_us + window_s * {MICROS}L <= {now_us}"
        does_close = start_of(now_us, SHORTEST_S) > start_of(before_us, SHORTEST_S)
        if does_close:
            whole.persist()
        still = self.files.still_open
        try:
            whole.where(f"NOT ({is_closed})").write.mode("overwrite").parquet(str(still))
            if does_close:
                shutil.rmtree(self.files.staging, ignore_errors=True)
                closed = whole.where(is_closed).mapInArrow(finished, results.DDL).repartition("window", "date")
                closed.write.partitionBy("window", "date").parquet(str(self.files.staging))
        finally:
            whole.unpersist()
        late = parquet.read_table(still, columns=["window_s", "events"], filters=[("subject", "=", LATE)])
        return list(zip(late["window_s"].to_pylist(), late["events"].to_pylist(), strict=True))


# The work of executors.


def heads_of(batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [head_of(*row)._asdict() for row in _rows(batch)]
        yield pa.RecordBatch.from_pylist(rows, schema=_HEADS)


def gathered(skipped: frozenset[int], watermark_us: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    gatherer = Gatherer(watermark_us)
    # Batches that are not sound were skipped when their heads were examined.
    for batch in batches:
        for offset, _, body in _rows(batch):
            if offset not in skipped:
                gatherer.add(decode_events(body, is_checked=True))
    yield from gatherer.sums().to_batches()


def settled(batches: Batches) -> Iterator[pa.RecordBatch]:
    yield from sums.settled(list(batches)).to_batches()


def finished(batches: Batches) -> Iterator[pa.RecordBatch]:
    """One partition of settled sums: it has all rows of each window and subject in it."""
    yield from results.results_of(sums.joined(batches)).to_batches()


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[int, int, bytes]]:
    times_us = batch.column("time").cast(pa.int64()).to_pylist()
    return zip(batch.column("offset").to_pylist(), times_us, batch.column("body").to_pylist(), strict=True)


def _head_schema() -> Any:
    kinds = {"identity": pa.binary(), "broker": pa.string(), "stories": pa.string()}
    return pa.schema([(name, kinds.get(name, pa.int64())) for name in BatchHead._fields])


_HEADS: Final = _head_schema()
