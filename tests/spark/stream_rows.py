"""Rows to fill a double's streams with, and options to read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pandomq.chunk_form import MessageRow
from pandomq.properties import Properties, encode_header

from .stream_port_double import StreamPortDouble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_US = 1_763_262_000_000_000
"""Of offset 0; offset n comes n seconds later."""


def row(offset: int, body: bytes | None = None) -> MessageRow:
    octets = f"body {offset}".encode() if body is None else body
    header = encode_header(len(octets), Properties(content_type="text/plain", headers={"number": offset % 3}))
    key = f"{('eu', 'us')[offset % 2]}.{offset % 5}".encode()
    return MessageRow(offset, START_US + offset * 1_000_000, b"trade", key, header, octets)


def fill(port: StreamPortDouble, name: str, chunks: int, rows: int = 10, bodies: list[bytes] | None = None) -> None:
    stream = port.stream(name)
    for _ in range(chunks):
        offsets = range(stream.end, stream.end + (rows if bodies is None else len(bodies)))
        stream.append([row(at, None if bodies is None else bodies[at - offsets[0]]) for at in offsets])


def batch(spark: SparkSession, port: StreamPortDouble, columns: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("pandomq").option("url", port.url).options(**options)
    return (reader if columns is None else reader.schema(columns)).load()


def stream(spark: SparkSession, port: StreamPortDouble, columns: str | None = None, **options: str) -> DataFrame:
    reader = spark.readStream.format("pandomq").option("url", port.url).options(**options)
    return (reader if columns is None else reader.schema(columns)).load()


def run(frame: DataFrame, work: Path, *, name: str = "out", **trigger: Any) -> Any:
    """Starts a query into a table of files, with a checkpoint beside it."""
    return (
        frame.writeStream.format("parquet")
        .option("path", str(work / name))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(**(trigger or {"availableNow": True}))
        .start()
    )


def offsets(spark: SparkSession, work: Path, name: str = "out") -> list[tuple[str, int]]:
    found = spark.read.schema("stream STRING, offset BIGINT").parquet(str(work / name)).collect()
    return sorted((one["stream"], one["offset"]) for one in found)
