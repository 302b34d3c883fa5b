"""Many small files of a lake become few large ones, a stream and day at a time; readers notice nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.pipeline import plots
from pandomq.pipeline.summary import Plot, Summary, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pandomq.pipeline.lake import Lake
    from pandomq.pipeline.lake_records import LakeFile

FILE_BYTES: Final = 256 * 1024**2
"""What a file should be; one of half that is left alone."""
FILES_MIN: Final = 2
"""Fewer small ones of a stream and day are not worth it."""
BARS: Final = 12
"""Of the plot: the streams and days with most files."""


def compact(session: SparkSession, lake: Lake, advance: Callable[[int], None] = lambda _: None) -> Summary:
    """Raises LakeFault if somebody else writes to the lake."""
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
    table = Table("Compacted", ("vhost", "stream", "date", "files before", "files after"), rows)
    verdict = f"{before} files became {after}" if rows else "there was nothing to compact"
    bars = sorted(((f"{row[1]}, {row[2]}", float(str(row[3]))) for row in rows), key=lambda bar: -bar[1])
    drawn = [Plot("Files before, by stream and day", plots.bars(bars[:BARS], "files"))] if rows else []
    return Summary("compact", verdict, True, facts, [table] if rows else [], drawn)


def groups_of(files: list[LakeFile]) -> list[list[LakeFile]]:
    """Small files that belong together."""
    small: dict[tuple[str, str, str], list[LakeFile]] = defaultdict(list)
    for file in files:
        if file.bytes < FILE_BYTES // 2:
            small[file.vhost, file.stream, file.date].append(file)
    return [some for some in small.values() if len(some) >= FILES_MIN]
