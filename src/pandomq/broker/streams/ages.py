"""Durations in the form of x-max-age and x-stream-offset: a number and a unit."""

import re
from typing import Final

_FORM: Final = re.compile(r"([0-9]{1,15})(Y|M|D|h|m|s)")
_SECOND_MS: Final = 1000
_DAY_MS: Final = 24 * 3600 * _SECOND_MS
_UNITS_MS: Final = {
    "Y": 365 * _DAY_MS,
    "M": 30 * _DAY_MS,
    "D": _DAY_MS,
    "h": 3600 * _SECOND_MS,
    "m": 60 * _SECOND_MS,
    "s": _SECOND_MS,
}

INVALID: Final = "invalid_max_age"
"""RabbitMQ's name for an invalid one."""


def age_ms(text: str) -> int | None:
    """None if the text is no age."""
    found = _FORM.fullmatch(text)
    if found is None or not int(found[1]):
        return None
    return int(found[1]) * _UNITS_MS[found[2]]
