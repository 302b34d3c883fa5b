"""Joins small files of a lake into few large ones, by stream and day, without an effect on readers."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.pipeline import plots
from pandomq.pipeline.summary import Chart, Summary, SummaryTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pandomq.pipeline.lake import Lake
    from pandomq.pipeline.lake_records import LakeFile

FILE_BYTES: Final = 256 * 1024**2
"""The target size of a file; a file of at least half that size is left alone."""
FILES_MIN: Final = 2
"""Fewer small files of a stream and day are not joined."""
BARS: Final = 12
"""Bars of the plot: the streams and days with most files."""


def compact(session: SparkSession, lake: Lake, advance: Callable[[int], None] = lambda _: None) -> Summary:
    """Raises LakeFault if another process writes to the lake."""
    begun_s = time.monotonic()
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows: list[tuple[object, ...]] = []
    with lake.writing():
        for files in groups_of(lake.files()):
            first = files[0]
            frame = session.read.option("basePath", str(lake.directory)).parquet(
                *(str(lake.directory / file.path) for file in files)
            )
            size = sum(file.bytes for file in files)
            count = max(1, size // FILE_BYTES)
            ordered = frame.repartitionByRange(count, "offset").sortWithinPartitions("offset")
            ordered.write.partitionBy("vhost", "stream", "date").mode("overwrite").parquet(str(lake.staging))
            record = lake.take_in(None, files)
            rows.append((first.vhost, first.stream, first.date, len(files), len(record.adds)))
            advance(1)
    before, after = sum(int(str(row[3])) for row in rows), sum(int(str(row[4])) for row in rows)
    facts: dict[str, object] = {"files before": before, "files after": after}
    facts["seconds"] = round(time.monotonic() - begun_s, 1)
    table = SummaryTable("Compacted", ("vhost", "stream", "date", "files before", "files after"), rows)
    verdict = f"{before} files were merged into {after}" if rows else "there were no files to merge"
    bars = sorted((("there were no files to merge", float(str(row[3]))) for row in rows), key=lambda bar: -bar[1])
    drawn = [Chart("Files before, by stream and day", plots.bars(bars[:BARS], "files"))] if rows else []
    return Summary("compact", verdict, True, facts, [table] if rows else [], drawn)


def groups_of(files: list[LakeFile]) -> list[list[LakeFile]]:
    """Small files to be joined."""
    small: dict[tuple[str, str, str], list[LakeFile]] = defaultdict(list)
    for file in files:
        if file.bytes < FILE_BYTES // 2:
            small[file.vhost, file.stream, file.date].append(file)
    return [some for some in small.values() if len(some) >= FILES_MIN]
