"""Sums of events: one row for each window, subject, measure and bucket. Sums of parts add up to those of the whole.
`total` is the sum of the measured values, sizes or times, and `highest` the largest of them: null if unknown, as in
sums of version 0.1.

A window is identified by its length and its start; windows of one length follow each other without gaps, from 1970 on.
In one window a subject has at most NAMES_MAX names: those with fewest messages are added up under OTHERS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pandomq.pipeline.rollup.sketch import Array

WINDOWS: Final[Mapping[str, int]] = {"10s": 10, "1m": 60, "1h": 3600}
"""Each is a multiple of the one before it; in seconds."""
SHORTEST_S: Final = min(WINDOWS.values())
LONGEST_S: Final = max(WINDOWS.values())
MICROS: Final = 1_000_000

NAMES_MAX: Final = 10_000
OTHERS: Final = "(others)"

SCHEMA: Final = pa.schema(
    [
        ("window_s", pa.int32()),
        ("start_us", pa.int64()),
        ("subject", pa.string()),
        ("name", pa.string()),
        ("within", pa.string()),
        ("measure", pa.string()),
        ("bucket", pa.int32()),
        ("events", pa.int64()),
        ("messages", pa.float64()),
        ("bytes", pa.float64()),
        ("total", pa.float64()),
        ("highest", pa.float64()),
    ]
)
DDL: Final = (
    "window_s INT, start_us BIGINT, subject STRING, name STRING, within STRING, measure STRING, bucket INT, "
    "events BIGINT, messages DOUBLE, bytes DOUBLE, total DOUBLE, highest DOUBLE"
)
KEYS: Final = tuple(SCHEMA.names[:7])
VALUES: Final = tuple(SCHEMA.names[7:])
HIGHEST: Final = VALUES[-1]
"""The column that is not added up."""
TOGETHER: Final = KEYS[:3]
"""Rows with these in common are settled together."""


def added_up(table: pa.Table, keys: Sequence[str] = KEYS, values: Sequence[str] = VALUES) -> pa.Table:
    """One row for each combination of keys, in no particular order."""
    ways = [(value, "max" if value == HIGHEST else "sum") for value in values]
    grouped = table.group_by(list(keys), use_threads=False).aggregate(ways)
    columns = [grouped[key] for key in keys] + [grouped[f"{value}_{way}"] for value, way in ways]
    return pa.Table.from_arrays(columns, names=[*keys, *values])


def settled(tables: Sequence[pa.Table | pa.RecordBatch], names_max: int = NAMES_MAX) -> pa.Table:
    """Adds up parts that have windows and subjects in common, with at most `names_max` names."""
    total = added_up(joined(tables)).cast(SCHEMA)
    rare = _rare(total, names_max)
    if rare is None:
        return total
    others = pa.scalar(OTHERS)
    renamed = total.set_column(3, "name", pc.if_else(rare, others, total["name"]))
    renamed = renamed.set_column(4, "within", pc.if_else(rare, pa.scalar(""), renamed["within"]))
    return added_up(renamed).cast(SCHEMA)


def _rare(table: pa.Table, names_max: int) -> pa.Array | None:
    """The rows with names beyond the limit; None if there are none."""
    names = added_up(table, KEYS[:5], ("messages",))
    # Others that were added up before stay others.
    names = names.filter(pc.not_equal(names["name"], OTHERS))
    if len(names) <= names_max:
        return None
    # Names with most messages come first; equal ones are in alphabetical order.
    order = [(key, "ascending") for key in TOGETHER] + [("messages", "descending"), ("name", "ascending")]
    names = names.sort_by([*order, ("within", "ascending")])
    firsts = firsts_of(names, TOGETHER)
    ranks = np.arange(len(names)) - np.repeat(firsts, np.diff(np.append(firsts, len(names))))
    if ranks.max() < names_max:
        return None
    flagged = names.select(KEYS[:5]).append_column("rare", pa.array(ranks >= names_max))
    marked = table.append_column("place", pa.array(np.arange(len(table)))).join(flagged, list(KEYS[:5]))
    return marked.sort_by("place")["rare"].fill_null(False).combine_chunks()


def firsts_of(table: pa.Table, keys: Sequence[str]) -> Array:
    """For a sorted table: the starts of runs of rows with equal keys."""
    if not len(table):
        return np.zeros(0, dtype=np.int64)
    differs = np.zeros(len(table) - 1, dtype=bool)
    for key in keys:
        column = table[key].combine_chunks()
        differs |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def joined(parts: Iterable[pa.Table | pa.RecordBatch]) -> pa.Table:
    """One after the other; Spark's tables have columns that may not be null."""
    tables = [part if isinstance(part, pa.Table) else pa.Table.from_batches([part]) for part in parts]
    return pa.concat_tables([SCHEMA.empty_table(), *(table.cast(SCHEMA) for table in tables)])
