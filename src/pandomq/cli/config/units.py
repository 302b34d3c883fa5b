"""Sizes and times as people write them: "64MiB", "1GB", "30s", "5min"; and back.

A number without a unit is in the unit in the key's name. A value is shown in the largest unit in which it is a whole
number, so that parsing the text gives the same value.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

BYTE_UNITS: Final = {
    "B": 1,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "TiB": 1024**4,
}
SHARE_STEP_BYTES: Final = BYTE_UNITS["MiB"]
"""Shares of a machine's memory are rounded down to this, so that they are readable."""
MS_UNITS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

# Units are case-insensitive.
_BYTES_BY_LOWER: Final = {unit.lower(): size for unit, size in BYTE_UNITS.items()}
_WRITTEN: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z%]*)", re.ASCII)


def parse_bytes(text: str, *, whole_bytes: int | None = None) -> int:
    """Bytes of a size; a percentage is of `whole_bytes`, and rejected without it."""
    number, unit = _split(text, _bytes_expected(text, whole_bytes))
    if unit == "%" and whole_bytes is not None:
        if not 0 < number <= 100:
            raise ValueError(f"'{text}' is not a valid share: expected more than 0 % and at most 100 %")
        return int(number * whole_bytes / 100) // SHARE_STEP_BYTES * SHARE_STEP_BYTES
    scale = 1 if not unit else _BYTES_BY_LOWER.get(unit.lower())
    if scale is None:
        raise ValueError(_bytes_expected(text, whole_bytes))
    return _whole(number * scale, text, "bytes")


def parse_ms(text: str) -> int:
    """Milliseconds of a time with a unit, or of a bare number of them."""
    return _parse_time(text, "ms")


def parse_s(text: str) -> int:
    """Seconds of a time with a unit, or of a bare number of them."""
    return _parse_time(text, "s")


def format_bytes(size: int) -> str:
    return _largest_whole(size, BYTE_UNITS)


def format_ms(time_ms: int) -> str:
    return _largest_whole(time_ms, MS_UNITS)


def format_s(time_s: int) -> str:
    return _largest_whole(time_s * 1000, {unit: ms for unit, ms in MS_UNITS.items() if unit != "ms"})


def _parse_time(text: str, own_unit: str) -> int:
    expected = (
        f"'{text}' is not a duration: expected a number of {own_unit}, or a number with a unit: {', '.join(MS_UNITS)}"
    )
    number, unit = _split(text, expected)
    scale = MS_UNITS.get(unit or own_unit)
    if scale is None:
        raise ValueError(expected)
    return _whole(number * scale / MS_UNITS[own_unit], text, own_unit)


def _split(text: str, expected: str) -> tuple[Fraction, str]:
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise ValueError(expected)
    return Fraction(written[1]), written[2]


def _whole(number: Fraction, text: str, unit: str) -> int:
    if number != int(number):
        raise ValueError(f"'{text}' is not a whole number of {unit}")
    return int(number)


def _largest_whole(value: int, units: dict[str, int]) -> str:
    if value == 0:
        return "0"
    unit = max((unit for unit in units if value % units[unit] == 0), key=units.__getitem__)
    return f"{value // units[unit]}{unit}"


def _bytes_expected(text: str, whole_bytes: int | None) -> str:
    share = "" if whole_bytes is None else ", or a share of the machine's memory: 60%"
    return (
        f"'{text}' is not a size: expected a number of bytes, or a number with a unit: {', '.join(BYTE_UNITS)}{share}"
    )
