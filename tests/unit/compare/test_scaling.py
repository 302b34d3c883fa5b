"""docs/scaling.md names no figure that is not in docs/*.json or computed from them."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest

from tests.unit.compare.test_pipeline_figures import figures
from tools.compare.clusters.comparison import ClusterComparison
from tools.compare.peers import documents
from tools.compare.peers.comparison import Comparison
from tools.compare.peers.ledger import Ledger
from tools.compare.pipelines.figures import PipelineFigures
from tools.compare.scaling.measured import NotMeasured, measured
from tools.compare.scaling.page import page
from tools.compare.scaling.plan import Demand, Plan
from tools.compare.spark.figures import SparkFigures

DOCS = Path(__file__).parents[3] / "docs"


def load(name: str, kind: type) -> Any:
    return msgspec.json.decode((DOCS / name).read_bytes(), type=kind)


def parts() -> tuple[Comparison, ClusterComparison, SparkFigures]:
    return (
        load(documents.ONE_BROKER, Comparison),
        load(documents.CLUSTERS, ClusterComparison),
        load(documents.SPARK, SparkFigures),
    )


def jobs() -> PipelineFigures | None:
    there = (DOCS / documents.PIPELINES).exists()
    return load(documents.PIPELINES, PipelineFigures) if there else None


def test_the_page_is_computed_from_the_figures() -> None:
    written = (DOCS / documents.PLAN).read_text()
    expected = page(Plan(Demand(), measured(*parts(), jobs())))
    assert written == expected, "the figures have changed: .venv/bin/python -m tools.compare.pipelines --page"


def found(name: str, ledger: str, subject: str, unit: str) -> float:
    """Read without any of the code that writes the page."""
    figures: list[dict[str, Any]] = json.loads((DOCS / name).read_text())[ledger]["figures"]
    (values,) = [
        one["values"] for one in figures if (one["subject"], one["broker"], one["unit"]) == (subject, "PandoMQ", unit)
    ]
    return median(values)


def test_some_figures_by_hand() -> None:
    written = (DOCS / documents.PLAN).read_text()
    mean = 1_000_000_000 / 24 / 3600
    replicated = found("clusters.json", "speed", "persistent, 1 KiB, acks, confirms, replicated", "messages/s")
    subject = "connection with channel, private queue and consumer"
    each_kib = found("benchmarks.json", "ledger", subject, "KiB each")
    opened = found("benchmarks.json", "ledger", subject, "opened/s")
    spark = json.loads((DOCS / "spark.json").read_text())
    for text in (
        f"{mean:,.0f} messages a second on average, and {4 * mean:,.0f} at the peak",
        f"{replicated:,.0f} messages/s | clusters.json",
        f"The peak is {4 * mean / replicated:.0%} of what",
        f"**{ceil(100_000 / 10_000) + 1} secondaries**",
        f"{10_000 * each_kib / 1024:,.0f} MiB of connections",
        f"which take {100_000 / 11 / 10 / opened:.1f} s at {opened:,.0f} a second",
        f"writes {4 * mean * 1024 * spark['disk_bytes_per_byte'] / 1e6:,.0f} MB/s at the peak",
        f"| the root | {4 * mean * 1124 * 8 / 1e9:.1f} | {4 * mean * 1124 * 8 * 13 / 1e9:.1f} |",
        f"at {min(replicated, 1e9 / (1124 * 13)):,.0f} messages a second, or",
    ):
        assert text in written


@pytest.mark.proves("R36")
def test_the_rate_of_one_core_of_a_root_is_stated_with_the_commands_that_measure_it() -> None:
    plan, operations = (DOCS / documents.PLAN).read_text(), (DOCS / "operations.md").read_text()
    alone = found("benchmarks.json", "ledger", "persistent, 1 KiB, acks, confirms", "messages/s")
    limit = plan.partition("## Where one root per cluster ends")[2]
    assert f"One alone did {alone:,.0f}, and no replicated root will do more, since its kernel uses one core" in limit
    size = operations.partition("### Size")[2].partition("\n## ")[0]
    for text in ("on one core", "scaling.md#where-one-root-per-cluster-ends", "make bench-peers", "make bench-cluster"):
        assert text in size


def test_jobs_that_were_measured_are_planned_with() -> None:
    plan = Plan(Demand(), measured(*parts(), figures()))
    # 125,000 rows/s on two cores, 46,296 messages/s at the peak, twice.
    assert plan.archive_cores == 2
    assert plan.archive_day_hours == pytest.approx(1e9 / 125_000 / 3600)
    # 10,000 rows took 1,234,567 bytes, with bodies of 100 bytes.
    assert plan.lake_tb_a_day == pytest.approx((1024 + 23.4567) / 1000)
    assert plan.audit_core_hours == pytest.approx(6e9 / 75_000 / 3600)
    shown = page(plan)
    assert "The archive reaches 62,500 rows per second and core. With\n2 cores" in shown and "not measured" not in shown
    without = Plan(Demand(), measured(*parts(), None))
    assert without.archive_cores is without.lake_tb_a_day is without.audit_core_hours is None
    assert "The archive is not measured yet" in page(without)


def test_a_figure_that_is_missing_is_named() -> None:
    alone, together, spark = parts()
    together.speed = Ledger()
    with pytest.raises(NotMeasured, match="a follower comes back"):
        measured(alone, together, spark, None)
    with pytest.raises(NotMeasured, match="rows read into Spark"):
        measured(alone, parts()[1], msgspec.structs.replace(spark, read={}), None)
