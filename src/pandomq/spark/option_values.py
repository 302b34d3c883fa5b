"""Options of a source or sink as values: names are case-insensitive, and errors name the allowed values.

Spark passes options as text. `check_known` rejects unknown ones: a misspelt option without effect is worse than an
error. No error repeats the value of an option that may hold a secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

_TRUE: Final = {"true", "1", "yes"}
_FALSE: Final = {"false", "0", "no"}
_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class BadOption(ValueError):
    """An option is missing, unknown, or has an invalid value."""


class OptionValues:
    """Reads options one by one, each with its type."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in dict(options).items()}
        self._names = {name.lower(): name for name in dict(options)}

    def __repr__(self) -> str:
        return f"OptionValues({sorted(self._names.values())})"

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def raw(self, name: str) -> str | None:
        """The given text, which may be empty."""
        return self._values.get(name.lower())

    def text(self, name: str) -> str | None:
        value = self._values.get(name.lower())
        if value is not None and not value.strip():
            raise BadOption(f"option {name} is empty")
        return value

    def needed(self, name: str, why: str) -> str:
        value = self.text(name)
        if value is None:
            raise BadOption(f"option {name} is missing: {why}")
        return value

    def number(self, name: str, *, least: int = 1) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not value.strip().lstrip("-").isdecimal() or int(value) < least:
            raise BadOption(f"option {name} is {value!r}: expected a whole number of at least {least}")
        return int(value)

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        word = value.strip().lower()
        if word not in _TRUE | _FALSE:
            raise BadOption(f"option {name} is {value!r}: expected true or false")
        return word in _TRUE

    def milliseconds(self, name: str, default_ms: int) -> int:
        """A duration: "500ms", "30s", "5m", "1h", "7d", or a number of seconds."""
        value = self.text(name)
        if value is None:
            return default_ms
        word = value.strip().lower().replace(" ", "")
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = word[len(digits) :] or "s"
        if not digits.isdecimal() or unit not in _UNITS_MS or int(digits) == 0:
            raise BadOption(f"option {name} is {value!r}: expected a duration such as 30s, 5m or 500ms")
        return int(digits) * _UNITS_MS[unit]

    def object(self, name: str) -> dict[str, Any] | None:
        """A JSON object."""
        value = self.text(name)
        if value is None:
            return None
        try:
            found = json.loads(value)
        except ValueError as error:
            raise BadOption(f"option {name} is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise BadOption(f'option {name} must be a JSON object such as {{"orders": 17}}')
        return found

    def check_known(self, known: Iterable[str]) -> None:
        allowed = {name.lower() for name in known}
        unknown = sorted(name for lower, name in self._names.items() if lower not in allowed)
        if unknown:
            raise BadOption(f"unknown option {', '.join(unknown)}; known are {', '.join(sorted(known))}")

    def at_most_one(self, *names: str) -> str | None:
        """The one of these options that is given, None if none is."""
        given = [name for name in names if name in self]
        if len(given) > 1:
            raise BadOption(f"options {' and '.join(given)} cannot be combined: give one of them")
        return given[0] if given else None


def microseconds(value: object, name: str) -> int:
    """A point in time, from milliseconds since 1970 or from ISO 8601 text, in UTC unless it has a zone."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1000
    text = str(value).strip()
    if text.lstrip("-").isdecimal():
        return int(text) * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(
            f"option {name}: {text!r} is neither milliseconds since 1970 nor a time such as 2026-11-16T03:00:00Z"
        ) from None
    return time_us(moment)


def time_us(moment: datetime) -> int:
    """Microseconds since 1970, without passing through a float."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
