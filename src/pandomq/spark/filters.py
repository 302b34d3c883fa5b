"""Conditions that a batch read takes over from Spark: on offset, time, stream and routing key.

Offsets and times are ranges, and times never decrease within a stream: so both narrow the range that is read. Streams
are left out as a whole. Routing keys are compared where the messages are read, before other parts of a message. A
condition is taken over only if the result fulfils it exactly; Spark checks all others itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pandomq.spark.option_values import time_us


@dataclass(frozen=True)
class KeyFilter:
    """Wanted routing keys: some keys, and some prefixes."""

    among: tuple[frozenset[str], ...] = ()
    prefixes: tuple[str, ...] = ()

    def __call__(self, keys: pa.Array) -> pa.Array:
        mask = pa.repeat(pa.scalar(True), len(keys))
        for values in self.among:
            mask = pc.and_(mask, pc.is_in(keys, pa.array(sorted(values), pa.string())))
        for prefix in self.prefixes:
            mask = pc.and_(mask, pc.starts_with(keys, prefix))
        return mask

    def __bool__(self) -> bool:
        return bool(self.among or self.prefixes)


@dataclass(frozen=True)
class Narrowing:
    """The intersection of all conditions: offsets and times from one until before another, some streams, some keys."""

    first_offset: int | None = None
    end_offset: int | None = None
    first_us: int | None = None
    end_us: int | None = None
    streams: frozenset[str] | None = None
    keys: KeyFilter = KeyFilter()

    def with_bounds(self, column: str, first: int | None, end: int | None) -> Narrowing:
        if column == "offset":
            return replace(
                self, first_offset=_greater(self.first_offset, first), end_offset=_less(self.end_offset, end)
            )
        return replace(self, first_us=_greater(self.first_us, first), end_us=_less(self.end_us, end))

    def with_values(self, column: str, values: frozenset[str]) -> Narrowing:
        if column == "stream":
            return replace(self, streams=values if self.streams is None else self.streams & values)
        return replace(self, keys=replace(self.keys, among=(*self.keys.among, values)))

    def with_condition(self, condition: Any) -> Narrowing | None:
        """This with one more condition of Spark; None if it cannot be taken over."""
        kind, column, value = type(condition).__name__, condition_column(condition), getattr(condition, "value", None)
        if column in ("offset", "time"):
            return self._with_number(kind, column, value)
        if column in ("stream", "routing_key"):
            return self._with_text(kind, column, value)
        return None

    def _with_number(self, kind: str, column: str, value: Any) -> Narrowing | None:
        if kind == "IsNotNull":
            return self
        number = time_us(value) if column == "time" and isinstance(value, datetime) else value
        if isinstance(number, bool) or not isinstance(number, int):
            return None
        match kind:
            case "EqualTo" | "EqualNullSafe":
                return self.with_bounds(column, number, number + 1)
            case "GreaterThan":
                return self.with_bounds(column, number + 1, None)
            case "GreaterThanOrEqual":
                return self.with_bounds(column, number, None)
            case "LessThan":
                return self.with_bounds(column, None, number)
            case "LessThanOrEqual":
                return self.with_bounds(column, None, number + 1)
            case _:
                return None

    def _with_text(self, kind: str, column: str, value: Any) -> Narrowing | None:
        match kind, value:
            case "IsNotNull", _:
                return self
            case (("EqualTo" | "EqualNullSafe"), str()):
                return self.with_values(column, frozenset({value}))
            case "In", list() | tuple():
                return self.with_values(column, frozenset(one for one in value if isinstance(one, str)))
            case "StringStartsWith", str() if column == "routing_key":
                return replace(self, keys=replace(self.keys, prefixes=(*self.keys.prefixes, value)))
            case _:
                return None


def take_over(conditions: Iterable[Any]) -> tuple[Narrowing, list[Any]]:
    """The narrowing, and the conditions that Spark has to check itself."""
    narrowing = Narrowing()
    left: list[Any] = []
    for condition in conditions:
        further = narrowing.with_condition(condition)
        if further is None:
            left.append(condition)
        else:
            narrowing = further
    return narrowing, left


def condition_column(condition: Any) -> str | None:
    """The column of a condition, None if it is nested."""
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    return path[0] if len(path) == 1 else None


def _greater(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _less(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
