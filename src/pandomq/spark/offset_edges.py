"""The edges of a read: earliest, latest, offsets of each stream, or points in time.

    startingOffsets              earliest, latest, or {"orders": 17, "payments": "earliest"}
    startingTimestamp            one point in time for all streams
    startingOffsetsByTimestamp   {"orders": "2026-11-16T03:00:00Z"}

and the same for `ending…`. In JSON -2 is earliest and -1 latest, as in Kafka's source. A stream that the JSON does not
name begins or ends where it does without the option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pandomq.data_client.records import StreamRange
from pandomq.spark.option_values import BadOption, OptionValues, microseconds

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
STARTING: Final = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
ENDING: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_NUMBERS: Final = {-2: EARLIEST, -1: LATEST}


class TimeIndex(Protocol):
    def offset_at(self, stream: str, time_us: int) -> int:
        """The first offset that is not before the time."""


@dataclass(frozen=True)
class Edge:
    """One end of the range to read, for any stream."""

    default: str
    offsets: Mapping[str, int | str] = field(default_factory=dict)
    times_us: Mapping[str, int] = field(default_factory=dict)
    time_us: int | None = None

    @classmethod
    def of(cls, values: OptionValues, names: tuple[str, str, str], default: str) -> Edge:
        """Raises BadOption."""
        given = values.at_most_one(*names)
        if given is None:
            return cls(default)
        if given == names[1]:
            return cls(default, time_us=microseconds(values.needed(given, ""), given))
        if given == names[2]:
            moments = values.object(given) or {}
            return cls(default, times_us={stream: microseconds(moment, given) for stream, moment in moments.items()})
        word = values.needed(given, "").strip()
        if word.lower() in (EARLIEST, LATEST):
            return cls(word.lower())
        offsets = values.object(given) if word.startswith("{") else None
        if offsets is None:
            raise BadOption(f"option {given} is {word!r}: expected earliest, latest, or JSON")
        return cls(default, offsets={stream: _offset(offset, given) for stream, offset in offsets.items()})

    @property
    def named(self) -> set[str]:
        return {*self.offsets, *self.times_us}

    def resolve(self, stream: str, known: StreamRange, times: TimeIndex) -> int:
        """The offset of this edge; an explicit offset may be outside of the stream's range."""
        time_us = self.times_us.get(stream, self.time_us)
        if time_us is not None:
            return times.offset_at(stream, time_us)
        found = self.offsets.get(stream, self.default)
        if isinstance(found, int):
            return found
        return known.first_offset if found == EARLIEST else known.end_offset


def _offset(value: Any, name: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadOption(f"option {name}: {value!r} is not an offset")
    if isinstance(value, int):
        if value < -2:
            raise BadOption(f"option {name}: {value} is not an offset")
        return _NUMBERS.get(value, value)
    if value.lower() not in (EARLIEST, LATEST):
        raise BadOption(f"option {name}: {value!r} is neither an offset nor earliest or latest")
    return value.lower()
