"""Measurements as files: JSON for each comparison, a page written from all of them, and a computed plan."""

from contextlib import suppress
from pathlib import Path

import msgspec

from tools.compare.clusters.comparison import ClusterComparison
from tools.compare.everyday.figures import EverydayFigures
from tools.compare.peers.comparison import Comparison
from tools.compare.peers.page import page
from tools.compare.pipelines.figures import PipelineFigures
from tools.compare.scaling import page as scaling_page
from tools.compare.scaling.measured import NotMeasured, measured
from tools.compare.scaling.plan import Demand, Plan
from tools.compare.spark.figures import SparkFigures
from tools.compare.wrapping import wrapped

ONE_BROKER = "benchmarks.json"
CLUSTERS = "clusters.json"
EVERYDAY = "everyday.json"
SPARK = "spark.json"
PIPELINES = "pipelines.json"
PAGE = "benchmarks.md"
PLAN = "scaling.md"


Figures = Comparison | ClusterComparison | EverydayFigures | SparkFigures | PipelineFigures


def write_figures(path: Path, figures: Figures) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")


def write_page(directory: Path, docs: Path) -> str:
    """Writes the page into the directory, from the figures there; missing ones are taken from the docs."""

    def found(name: str) -> Path | None:
        return next((path for path in (directory / name, docs / name) if path.exists()), None)

    alone, together, spark, jobs = found(ONE_BROKER), found(CLUSTERS), found(SPARK), found(PIPELINES)
    if alone is None:
        raise RuntimeError(f"{ONE_BROKER} does not exist: run make bench-peers")
    clusters = None if together is None else msgspec.json.decode(together.read_bytes(), type=ClusterComparison)
    figures = None if spark is None else msgspec.json.decode(spark.read_bytes(), type=SparkFigures)
    pipelines = None if jobs is None else msgspec.json.decode(jobs.read_bytes(), type=PipelineFigures)
    daily = found(EVERYDAY)
    everyday = None if daily is None else msgspec.json.decode(daily.read_bytes(), type=EverydayFigures)
    peers = msgspec.json.decode(alone.read_bytes(), type=Comparison)
    text = wrapped(page(peers, everyday, clusters, figures, pipelines))
    (directory / PAGE).write_text(text)
    if clusters is not None and figures is not None:
        with suppress(NotMeasured):
            plan = Plan(Demand(), measured(peers, clusters, figures, pipelines))
            (directory / PLAN).write_text(scaling_page.page(plan))
    return text
