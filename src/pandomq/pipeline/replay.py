"""`pandomq pipeline replay`: publishes rows of a lake to an exchange or a stream, each once, in order, at a
configurable pace.

Each slice of the plan is one write, identified by a name that is unique to the replay and by the slice's number, and a
broker publishes it once: a restarted replay continues, and publishes nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pandomq.pipeline import plots
from pandomq.pipeline.lake import LakeFault
from pandomq.pipeline.plots import Series
from pandomq.pipeline.replay_plan import ReplayPlan, ReplaySlice, save
from pandomq.pipeline.summary import Chart, Summary
from pandomq.spark.sink.write_names import query_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pandomq.pipeline.lake import Lake

LastBatch = Callable[[str], int]
"""The last batch of a query that the brokers know, or -1: `DataClient.last_batch`."""
COLUMNS = ("body", "routing_key", "headers", "properties")


def replay(
    session: SparkSession,
    lake: Lake,
    plan: ReplayPlan,
    target: Mapping[str, str],
    advance: Callable[[int], None] = lambda _: None,
    sleep: Callable[[float], object] = time.sleep,
) -> Summary:
    """`target`: the sink's options (url, and exchange or stream). It ends before a slice if `sleep` returns True (like
    `Event.wait`), and continues when it is called again. Raises LakeFault if files are gone."""
    begun_s = time.monotonic()
    rows_before = plan.rows
    points: list[tuple[float, float]] = []
    frame = selected(session, lake, plan)
    first_due_s = plan.slices[plan.done].due_s if plan.done < len(plan.slices) else 0.0
    for number, part in list(enumerate(plan.slices))[plan.done :]:
        if sleep(max(0.0, part.due_s - first_due_s - (time.monotonic() - begun_s))):
            break
        rows = _publish(frame, part, plan, number, target)
        plan.done, plan.rows = number + 1, plan.rows + rows
        save(lake, plan)
        points.append((time.monotonic() - begun_s, float(plan.rows - rows_before)))
        advance(1)
    taken_s = time.monotonic() - begun_s
    facts: dict[str, object] = {
        "replay": plan.name,
        "rows": plan.rows - rows_before,
        "rows in all": plan.rows,
        "slices": len(plan.slices),
        "seconds": round(taken_s, 1),
        "rows a second": round((plan.rows - rows_before) / taken_s) if taken_s else 0,
    }
    plot = Chart("Rows published", plots.lines([Series("rows", points)], "seconds", "rows"))
    verdict = f"{plan.rows - rows_before:,} rows were published"
    if not points:
        verdict = f"all {plan.rows:,} rows had been published before"
    elif rows_before:
        verdict += f", after {rows_before:,} before"
    left = len(plan.slices) - plan.done
    if left:
        facts["slices left"] = left
        verdict = f"{plan.rows - rows_before:,} rows were published, and the replay is incomplete: {plan.progress}; "
        verdict += f"the same command with --name {plan.name} resumes it"
    return Summary("replay", verdict, True, facts, plots=[plot], complete=not left)


def insist_on_known(plan: ReplayPlan, target: Mapping[str, str], last_batch: LastBatch) -> None:
    """The brokers must know the slices that the plan has published, otherwise it was published elsewhere. Raises
    LakeFault."""
    if not plan.rows:
        return
    query = query_name(plan.write_id, target.get("exchange", ""), target.get("stream", ""))
    # Version 0.1 identified its writes by their names only.
    if max(last_batch(query), last_batch(plan.write_id)) < 0:
        raise LakeFault(
            f"{plan.progress} of replay {plan.name}, but these brokers do not remember it: they are not the brokers "
            "it was started with, the vhost is another one, or it was too long ago. Choose another --name"
        )


def selected(session: SparkSession, lake: Lake, plan: ReplayPlan) -> DataFrame:
    """The selected rows. Raises LakeFault, and Spark's exception for an invalid condition."""
    paths = [lake.directory / file.path for file in plan.files]
    if not paths:
        raise LakeFault("no row in the lake matches the selection: widen it")
    if not all(path.exists() for path in paths):
        raise LakeFault(
            f"the lake was compacted since replay {plan.name} started: start a new replay from the row where it stopped"
        )
    frame = session.read.option("basePath", str(lake.directory)).parquet(*map(str, paths))
    selection = plan.selection
    for bound, condition in (
        (selection.first_offset, "offset >= {}"),
        (selection.end_offset, "offset < {}"),
        (selection.first_us, "unix_micros(time) >= {}"),
        (selection.end_us, "unix_micros(time) < {}"),
    ):
        if bound is not None:
            frame = frame.where(condition.format(bound))
    return frame.where(selection.where) if selection.where else frame


def _publish(frame: DataFrame, part: ReplaySlice, plan: ReplayPlan, number: int, target: Mapping[str, str]) -> int:
    from pyspark.sql import functions

    wanted = frame.where(part.condition())
    if part.stream is not None:
        wanted = wanted.where(functions.col("stream") == part.stream)
    order = ("stream", "offset") if part.stream is not None else ("time", "stream", "offset")
    # A stream is addressed by its own name, whatever the key was.
    wanted = wanted.orderBy(*order).select(*(name for name in COLUMNS if name != "routing_key" or "exchange" in target))
    rows = wanted.count()
    if rows:
        writer = wanted.write.format("pandomq").mode("append").options(**target)
        writer.option("writeId", plan.write_id).option("batch", number).save()
    return rows
