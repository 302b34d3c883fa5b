"""The measurements with Spark: docs/spark.json contains them, and is the only source of the page."""

from statistics import median
from typing import Final

import msgspec

from tools.compare.peers.machine import Machine
from tools.compare.peers.targets import Target

ALL_COLUMNS: Final = "all columns"
WITHOUT_MAPS: Final = "without headers and properties"
BODIES: Final = "offset and body"
DECODED: Final = "JSON bodies, decoded"

SPARKS_OWN: Final = "Spark's rate source → noop"
EMPTY_SOURCE: Final = "a Python source that does nothing → noop"
EMPTY_SINK: Final = "Spark's rate source → a Python sink that does nothing"
SOURCE: Final = "stream → noop"
SOURCE_AND_SINK: Final = "stream → stream"

READ_ROWS_MIN: Final = 300_000
WRITE_ROWS_MIN: Final = 60_000
OVERHEAD_MS_MAX: Final = 50


class SparkFigures(msgspec.Struct, frozen=True):
    day: str
    versions: dict[str, str]
    machine: Machine
    others_share: float
    rows: int
    """Of 1 KiB, in the stream that is read."""
    read: dict[str, list[float]]
    """Rows per second, by columns; one figure for each round."""
    write: list[float]
    """Rows per second, of 1 KiB, from Spark into a stream."""
    batch_ms: dict[str, list[float]]
    """How long small micro-batches took, by query; one median for each round."""
    broker_cpu_us: float
    """Processor time of the broker for each row read."""
    disk_bytes_per_byte: float
    """Bytes that the broker wrote to disk for each byte of a body: the log, and the chunks."""

    def overhead_ms(self, query: str, beyond: str) -> float | None:
        own, found = self.batch_ms.get(beyond), self.batch_ms.get(query)
        return median(found) - median(own) if own and found else None


def targets(figures: SparkFigures) -> list[Target]:
    read = figures.read.get(ALL_COLUMNS)
    return [
        Target.at_least("1 KiB rows read into noop", READ_ROWS_MIN, median(read) if read else None, "rows/s"),
        Target.at_least(
            "1 KiB rows written", WRITE_ROWS_MIN, median(figures.write) if figures.write else None, "rows/s"
        ),
        Target.at_most(
            "a micro-batch, beyond a source of Spark's own",
            OVERHEAD_MS_MAX,
            figures.overhead_ms(SOURCE, SPARKS_OWN),
            "ms",
        ),
        Target.at_most(
            "a micro-batch, beyond a Python source that does nothing",
            OVERHEAD_MS_MAX,
            figures.overhead_ms(SOURCE, EMPTY_SOURCE),
            "ms",
        ),
        Target.at_most(
            "a micro-batch, source and sink, beyond a Python sink that does nothing",
            OVERHEAD_MS_MAX,
            figures.overhead_ms(SOURCE_AND_SINK, EMPTY_SINK),
            "ms",
        ),
    ]
