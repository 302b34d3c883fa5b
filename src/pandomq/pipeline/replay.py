"""`pandomq pipeline replay`: rows of a lake to an exchange or a stream, each once, in order, at a pace.

Each slice of the plan is one write under the replay's name and the slice's number, which a broker makes visible once:
a replay that dies and is begun again goes on, and publishes nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pandomq.pipeline import plots
from pandomq.pipeline.lake import LakeFault
from pandomq.pipeline.plots import Series
from pandomq.pipeline.replay_plan import Plan, Slice, save
from pandomq.pipeline.summary import Plot, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pandomq.pipeline.lake import Lake

COLUMNS = ("body", "routing_key", "headers", "properties")


def replay(
    session: SparkSession,
    lake: Lake,
    plan: Plan,
    target: Mapping[str, str],
    advance: Callable[[int], None] = lambda _: None,
    sleep: Callable[[float], object] = time.sleep,
) -> Summary:
    """`target`: the sink's options (url, and exchange or stream). It ends before a slice if `sleep` says that it should
    (as `Event.wait` does), and goes on when it is called again. Raises LakeFault if files are gone."""
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
    plot = Plot("Rows published", plots.lines([Series("rows", points)], "seconds", "rows"))
    verdict = f"{plan.rows - rows_before:,} rows were published" if points else "all of it was published before"
    left = len(plan.slices) - plan.done
    if left:
        facts["slices left"] = left
        verdict = f"{plan.rows - rows_before:,} rows were published, and there are more: --name {plan.name} goes on"
    return Summary("replay", verdict, True, facts, plots=[plot])


def selected(session: SparkSession, lake: Lake, plan: Plan) -> DataFrame:
    """The rows that are meant. Raises LakeFault, and what Spark says of a condition that cannot be."""
    paths = [lake.directory / file.path for file in plan.files]
    if not paths:
        raise LakeFault("nothing in the lake is meant by this")
    if not all(path.exists() for path in paths):
        raise LakeFault(f"the lake was compacted since replay {plan.name} began: begin another one from where it ended")
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


def _publish(frame: DataFrame, part: Slice, plan: Plan, number: int, target: Mapping[str, str]) -> int:
    from pyspark.sql import functions

    wanted = frame.where(part.condition())
    if part.stream is not None:
        wanted = wanted.where(functions.col("stream") == part.stream)
    order = ("stream", "offset") if part.stream is not None else ("time", "stream", "offset")
    # A stream is reached by its own name, whatever the key was.
    wanted = wanted.orderBy(*order).select(*(name for name in COLUMNS if name != "routing_key" or "exchange" in target))
    rows = wanted.count()
    if rows:
        writer = wanted.write.format("pandomq").mode("append").options(**target)
        writer.option("writeId", plan.name).option("batch", number).save()
    return rows
