"""The newest windows of a vhost for the summary: totals of the most important names, and the course over time.

Executors add up results of closed windows and sums of open ones; the driver gets little data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pandomq.pipeline.rollup import measures, results, sums
from pandomq.pipeline.rollup.gathering import LATE
from pandomq.pipeline.rollup.results import results_of, start_of
from pandomq.pipeline.rollup.sums import MICROS, WINDOWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pandomq.pipeline.rollup.steps import RollupFiles

WINDOWS_SHOWN: Final = 360
"""The last ones: an hour of the shortest, two weeks of the longest."""
LEADERS: Final = 20
"""Names of a subject: those with most messages; for consumers the slowest ones."""
TIME: Final = "time"
"""The subject of a window as a whole."""


class Newest(NamedTuple):
    first_us: int
    end_us: int
    """Of the shown windows."""
    totals: list[dict[str, Any]]
    """Results over all of them."""
    series: list[dict[str, Any]]
    """Results of each, in order."""


def newest(session: SparkSession, files: RollupFiles, window: str) -> Newest:
    length_us = WINDOWS[window] * MICROS
    last_us = start_of(files.step.knowledge.seen_us, WINDOWS[window])
    first_us = max(0, last_us - (WINDOWS_SHOWN - 1) * length_us)
    frame = _sums(session, files, window, first_us)
    if frame is None:
        return Newest(first_us, first_us, [], [])
    frame = frame.where(f"start_us >= {first_us} AND window_s = {WINDOWS[window]} AND subject != '{LATE}'").mapInArrow(
        spread, sums.DDL
    )
    shown = frame.repartition(*sums.TOGETHER).mapInArrow(led, results.DDL)
    # Spark returns times in the machine's own zone, unless numbers are requested.
    shown = shown.selectExpr("*", "unix_micros(time) AS start_us").drop("time", "window", "date")
    rows = [row.asDict() for row in shown.collect()]
    series = sorted((row for row in rows if row["subject"] == TIME), key=lambda row: int(row["start_us"]))
    if series:
        first_us = series[0]["start_us"]
    return Newest(first_us, last_us + length_us, [row for row in rows if row["subject"] != TIME], series)


def _sums(session: SparkSession, files: RollupFiles, window: str, first_us: int) -> DataFrame | None:
    """For closed and open windows; None if there are none."""
    day = f"date={datetime.fromtimestamp(first_us / MICROS, UTC):%Y-%m-%d}"
    paths = [str(path) for path in files.results(window) if path.parent.name >= day]
    parts = []
    if paths:
        closed = session.read.schema(_WRITTEN).parquet(*paths)
        parts.append(closed.mapInArrow(partial(flattened, window), sums.DDL))
    if files.open_sums().is_dir():
        parts.append(session.read.schema(sums.DDL).parquet(str(files.open_sums())))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


_WRITTEN: Final = results.DDL.removeprefix("window STRING, date STRING, ")
"""The other two are in the names of directories."""


# The work of executors.

Batches = Iterable[pa.RecordBatch]


def flattened(window: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = pa.Table.from_batches([batch])
        yield from results.as_sums(table.append_column("window", pa.repeat(window, len(table)))).to_batches()


def spread(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Each row counts for its name over all windows, and for its window over all names."""
    for batch in batches:
        table = pa.Table.from_batches([batch]).cast(sums.SCHEMA)
        totals = _with(_with(table, "start_us", 0), "window_s", 0)
        of_brokers = table.filter(pc.equal(table["subject"], measures.BROKER))
        yield from totals.to_batches()
        yield from _with(_with(of_brokers, "subject", TIME), "name", "").to_batches()


def led(batches: Batches) -> Iterator[pa.RecordBatch]:
    yield from leaders(results_of(sums.settled(list(batches)))).to_batches()


def leaders(table: pa.Table, count: int = LEADERS) -> pa.Table:
    """All measures of the most important names, and windows unchanged."""
    frame = table.select(["subject", "name", "within", "measure", "messages", "p99"]).to_pandas()
    slow = frame["p99"].where(frame["measure"] == measures.HELD, 0.0).fillna(0.0)
    frame["score"] = frame["messages"].where(frame["subject"] != measures.CONSUMER, slow)
    by = ["subject", "name", "within"]
    scores = frame.groupby(by, sort=True)["score"].sum().sort_values(ascending=False, kind="stable")
    best = set(scores.groupby("subject", sort=False).head(count).index)
    kept = [subject == TIME or (subject, name, within) in best for subject, name, within in frame[by].values.tolist()]
    return table.filter(pa.array(kept, pa.bool_()))


def _with(table: pa.Table, name: str, value: object) -> pa.Table:
    place = sums.SCHEMA.get_field_index(name)
    return table.set_column(
        place, sums.SCHEMA.field(place), pa.repeat(pa.scalar(value, sums.SCHEMA.types[place]), len(table))
    )
