"""What was measured, as files: JSON for each comparison, and one page written from them all."""

from pathlib import Path

import msgspec

from pandomq.bench.clusters.comparison import ClusterComparison
from pandomq.bench.peers.comparison import Comparison
from pandomq.bench.peers.page import page
from pandomq.bench.spark.figures import SparkFigures

ONE_BROKER = "benchmarks.json"
CLUSTERS = "clusters.json"
SPARK = "spark.json"
PAGE = "benchmarks.md"


def write_figures(path: Path, figures: Comparison | ClusterComparison | SparkFigures) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")


def write_page(directory: Path, docs: Path) -> str:
    """Writes the page into the directory, from the figures there; those that are missing are taken from the docs."""

    def found(name: str) -> Path | None:
        return next((path for path in (directory / name, docs / name) if path.exists()), None)

    alone, together, spark = found(ONE_BROKER), found(CLUSTERS), found(SPARK)
    if alone is None:
        raise RuntimeError(f"there is no {ONE_BROKER}: make bench-peers")
    clusters = None if together is None else msgspec.json.decode(together.read_bytes(), type=ClusterComparison)
    figures = None if spark is None else msgspec.json.decode(spark.read_bytes(), type=SparkFigures)
    text = page(msgspec.json.decode(alone.read_bytes(), type=Comparison), clusters, figures)
    (directory / PAGE).write_text(text)
    return text
