"""The contents of a lake, by stream."""

from __future__ import annotations

from collections import defaultdict

from pandomq.pipeline.lake_records import LakeFile
from pandomq.pipeline.summary import SummaryTable


def contents(files: list[LakeFile]) -> SummaryTable:
    streams: dict[tuple[str, str], list[LakeFile]] = defaultdict(list)
    for file in files:
        streams[file.vhost, file.stream].append(file)
    rows = [
        (
            vhost,
            stream,
            sum(file.rows for file in some),
            min(file.first_offset for file in some),
            max(file.last_offset for file in some),
            len(some),
            sum(file.bytes for file in some),
        )
        for (vhost, stream), some in sorted(streams.items())
    ]
    return SummaryTable("Streams", ("vhost", "stream", "rows", "first offset", "last offset", "files", "bytes"), rows)
