"""The results of a closed window: a row for each subject and measure, with count, rate, and the distribution.

The distribution itself is in the row, as buckets and the messages in each: rows of several windows can be added up
again (`as_sums`), which percentiles cannot.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pandomq.pipeline.rollup import sums
from pandomq.pipeline.rollup.measures import UNITS
from pandomq.pipeline.rollup.sketch import Array, bucket_at, values_of
from pandomq.pipeline.rollup.sums import HIGHEST, KEYS, MICROS, WINDOWS, firsts_of

PARTS: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, HIGHEST: 1.0}
"""Parts of a distribution. The highest value is exact; others are those of buckets, and none is above it."""
TIME: Final = pa.timestamp("us", tz="UTC")
SCHEMA: Final = pa.schema(
    [
        ("window", pa.string()),
        ("date", pa.string()),
        ("time", TIME),
        ("subject", pa.string()),
        ("name", pa.string()),
        ("within", pa.string()),
        ("measure", pa.string()),
        ("events", pa.int64()),
        ("messages", pa.float64()),
        ("per_second", pa.float64()),
        ("bytes", pa.float64()),
        ("unit", pa.string()),
        ("mean", pa.float64()),
        *((name, pa.float64()) for name in PARTS),
        ("buckets", pa.list_(pa.int32())),
        ("bucket_messages", pa.list_(pa.float64())),
    ]
)
DDL: Final = (
    "window STRING, date STRING, time TIMESTAMP, subject STRING, name STRING, within STRING, measure STRING, "
    "events BIGINT, messages DOUBLE, per_second DOUBLE, bytes DOUBLE, unit STRING, mean DOUBLE, "
    "p50 DOUBLE, p90 DOUBLE, p99 DOUBLE, highest DOUBLE, buckets ARRAY<INT>, bucket_messages ARRAY<DOUBLE>"
)

_LENGTHS: Final = {length_s: name for name, length_s in WINDOWS.items()}
_SERIES: Final = KEYS[:6]


def results_of(table: pa.Table) -> pa.Table:
    """From settled sums, each of which is there once. A total over all windows has length 0, and no rate."""
    table = table.sort_by([(key, "ascending") for key in KEYS])
    firsts = firsts_of(table, _SERIES)
    ends = np.append(firsts[1:], len(table)).astype(np.int64)
    heads = table.take(pa.array(firsts))
    buckets, messages = table["bucket"].to_numpy(), table["messages"].to_numpy()
    lengths_s = heads["window_s"].to_numpy()
    total = _summed(messages, firsts)
    time = heads["start_us"].combine_chunks().cast(pa.timestamp("us")).cast(TIME)
    offsets = pa.array(np.append(firsts, len(table)).astype(np.int32))
    columns = [
        pa.array([_LENGTHS.get(length_s, "") for length_s in lengths_s.tolist()], pa.string()),
        pc.strftime(time, "%Y-%m-%d"),
        time,
        *(heads[name] for name in ("subject", "name", "within", "measure")),
        pa.array(_summed(table["events"].to_numpy(), firsts)),
        pa.array(total),
        pa.array(np.divide(total, lengths_s, out=np.zeros(len(total)), where=lengths_s > 0)),
        pa.array(_summed(table["bytes"].to_numpy(), firsts)),
        pa.array([UNITS.get(measure, "") for measure in heads["measure"].to_pylist()], pa.string()),
        _means(table, firsts),
        *_percentiles(buckets, messages, _highest(table, firsts), firsts, ends),
        pa.ListArray.from_arrays(offsets, pa.array(buckets)),
        pa.ListArray.from_arrays(offsets, pa.array(messages)),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _summed(values: Array, firsts: Array) -> Array:
    return np.add.reduceat(values, firsts) if len(firsts) else values


def _highest(table: pa.Table, firsts: Array) -> Array:
    """NaN if it was not recorded."""
    values = table[HIGHEST].to_numpy()
    return np.fmax.reduceat(values, firsts) if len(firsts) else values


def _percentiles(buckets: Array, messages: Array, highest: Array, firsts: Array, ends: Array) -> list[pa.Array]:
    known = np.where(buckets >= 0, messages, 0.0)
    # A run's last bucket is its highest; if that one is unknown there is no other.
    places = [bucket_at(part, known, firsts, ends) for part in PARTS.values()]
    # A bucket's value may be above all values in it; `fmin` takes the other one if one is unknown.
    values = [np.fmin(values_of(buckets[place]), highest) for place in places]
    values[-1] = np.where(np.isnan(highest), values[-1], highest)
    return [pa.array(part, from_pandas=True) for part in values]


def _means(table: pa.Table, firsts: Array) -> pa.Array:
    known = np.where(table["bucket"].to_numpy() >= 0, table["messages"].to_numpy(), 0.0)
    weights = _summed(known, firsts)
    total = _summed(table["total"].to_numpy(), firsts)
    return pa.array(np.divide(total, weights, out=np.full(len(total), np.nan), where=weights > 0), from_pandas=True)


def as_sums(results: pa.Table) -> pa.Table:
    """The sums from which the results were made; events, bytes, totals and highest values are with the first bucket of
    each."""
    counts = pc.list_value_length(results["buckets"]).to_numpy()
    rows = np.repeat(np.arange(len(results)), counts)
    firsts = np.cumsum(counts) - counts
    heads = results.take(pa.array(rows))
    lengths = [WINDOWS.get(name, 0) for name in results["window"].to_pylist()]
    columns = [
        pa.array(np.array(lengths, dtype=np.int32)[rows]),
        heads["time"].cast(pa.int64()),
        *(heads[name] for name in ("subject", "name", "within", "measure")),
        pc.list_flatten(results["buckets"]),
        _placed(results["events"], firsts, len(rows)),
        pc.list_flatten(results["bucket_messages"]),
        _placed(results["bytes"], firsts, len(rows)),
        _placed(_totals(results), firsts, len(rows)),
        _placed(results[HIGHEST], firsts, len(rows), missing=np.nan),
    ]
    return pa.Table.from_arrays(columns, schema=sums.SCHEMA)


def _totals(results: pa.Table) -> pa.ChunkedArray:
    """From means and the messages with a value; messages without one are in the first bucket."""
    values, messages = pc.list_flatten(results["buckets"]), pc.list_flatten(results["bucket_messages"])
    counts = pc.list_value_length(results["buckets"]).to_numpy()
    known = np.where(values.to_numpy() >= 0, messages.to_numpy(), 0.0)
    weights = _summed(known, np.cumsum(counts) - counts)
    return pa.chunked_array([pa.array(weights * results["mean"].fill_null(0.0).to_numpy())])


def _placed(column: pa.ChunkedArray, firsts: Array, rows: int, missing: float = 0) -> pa.Array:
    values = column.to_numpy()
    found = np.full(rows, missing, dtype=values.dtype)
    found[firsts] = values
    return pa.array(found, from_pandas=True)


def start_of(time_us: int, length_s: int) -> int:
    """The start of the window that contains this time."""
    return time_us // (length_s * MICROS) * (length_s * MICROS)
