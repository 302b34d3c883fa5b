"""All options of a reader, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pandomq.spark import connection
from pandomq.spark.connection import ConnectionOptions
from pandomq.spark.offset_edges import EARLIEST, ENDING, LATEST, STARTING, Edge
from pandomq.spark.option_values import BadOption, OptionValues

SUBJECTS: Final = ("stream", "streams", "streamPattern", "queue")
READ_OPTIONS: Final = (
    *connection.OPTIONS,
    *SUBJECTS,
    *STARTING,
    *ENDING,
    "minPartitions",
    "maxPartitionBytes",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "failOnDataLoss",
    "bodySchema",
    "pushFilters",
    "lease",
    "leaseTimeout",
)
PARTITION_BYTES: Final = 64 * 1024 * 1024
LEASE_TIMEOUT_MS: Final = 3_600_000


@dataclass(frozen=True)
class Subject:
    """The source: some streams, all streams whose names match, or a queue."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    queue: str | None = None

    @classmethod
    def of(cls, values: OptionValues) -> Subject:
        """Raises BadOption."""
        given = values.at_most_one(*SUBJECTS)
        if given is None:
            raise BadOption(
                "the source is missing: give option stream, streams (names with commas), streamPattern, or queue"
            )
        text = values.needed(given, "")
        if given == "queue":
            return cls(queue=text)
        if given == "stream":
            return cls(names=(text,))
        if given == "streams":
            return cls(names=tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())))
        try:
            re.compile(text)
        except re.error as error:
            raise BadOption(f"option streamPattern is not a regular expression: {error}") from None
        return cls(pattern=text)

    def covers(self, name: str) -> bool:
        return name in self.names or (self.pattern is not None and re.fullmatch(self.pattern, name) is not None)


@dataclass(frozen=True)
class SourceOptions:
    connection: ConnectionOptions
    subject: Subject
    start: Edge
    end: Edge
    partitions_min: int
    partition_bytes: int
    trigger_rows: int | None
    trigger_bytes: int | None
    fail_on_data_loss: bool
    body_schema: str | None
    push_filters: bool
    lease: str | None
    lease_timeout_ms: int

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
        """Raises BadOption, or the client's BadUrl."""
        values = OptionValues(options)
        values.check_known(READ_OPTIONS)
        found = cls(
            ConnectionOptions.of(values),
            Subject.of(values),
            Edge.of(values, STARTING, LATEST if streaming else EARLIEST),
            Edge.of(values, ENDING, LATEST),
            values.number("minPartitions") or 1,
            values.number("maxPartitionBytes") or PARTITION_BYTES,
            values.number("maxOffsetsPerTrigger"),
            values.number("maxBytesPerTrigger"),
            values.boolean("failOnDataLoss", True),
            values.text("bodySchema"),
            values.boolean("pushFilters", False),
            values.text("lease"),
            values.milliseconds("leaseTimeout", LEASE_TIMEOUT_MS),
        )
        found._check(values, streaming)
        return found

    def _check(self, values: OptionValues, streaming: bool) -> None:
        if streaming and (given := [name for name in ENDING if name in values]):
            raise BadOption(f"option {given[0]} is for batch reads: a streaming query has no end")
        if not streaming and (self.trigger_rows or self.trigger_bytes):
            raise BadOption("maxOffsetsPerTrigger and maxBytesPerTrigger are for streaming queries")
        if self.subject.queue is None:
            if self.lease is not None or "leaseTimeout" in values:
                raise BadOption("options lease and leaseTimeout need option queue")
            unknown = (self.start.named | self.end.named) - set(self.subject.names)
            if unknown and self.subject.pattern is None:
                raise BadOption(f"offsets are given for {', '.join(sorted(unknown))}, which the query does not read")
            return
        if not streaming:
            raise BadOption(
                "a queue can be read as a stream only: use readStream, with trigger(availableNow=True) for its "
                "present messages"
            )
        if self.lease is None:
            raise BadOption("option lease is missing: it names this query's lease on the queue")
        if given := [name for name in STARTING if name in values]:
            raise BadOption(f"option {given[0]} is for streams: a queue is read from its head")
