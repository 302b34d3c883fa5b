"""Reads the fields of a request, and refuses missing or invalid ones."""

from __future__ import annotations

from typing import Any

from pandomq.data_form import Fields
from pandomq.node.data.refusals import bad_request

NUMBER_MAX = 2**63 - 1
SHOWN_CHARACTERS_MAX = 40
"""Longer values are cut off in the text of an error."""


def _is(value: object) -> str:
    if value is None:
        return "it is missing"
    shown = repr(value)
    return f"it is {shown if len(shown) <= SHOWN_CHARACTERS_MAX else f'{shown[:SHOWN_CHARACTERS_MAX]}…'}"


def text(fields: Fields, name: str, bytes_max: int = 255) -> str:
    """Raises Refused (400), as do all below."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise bad_request(f"'{name}' must be a string, but {_is(value)}")
    try:
        size_bytes = len(value.encode())
    except UnicodeEncodeError:
        raise bad_request(f"'{name}' has a lone surrogate, which is not a character") from None
    if size_bytes > bytes_max:
        raise bad_request(f"'{name}' has {size_bytes} bytes, and may have {bytes_max}")
    return value


def number(fields: Fields, name: str, most: int = NUMBER_MAX, default: int | None = None) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise bad_request(f"'{name}' must be a number, but {_is(value)}")
    if not 0 <= value <= most:
        raise bad_request(f"'{name}' must be between 0 and {most}, but it is {value}")
    return value


def rows(fields: Fields, name: str, count_max: int) -> list[list[Any]]:
    """A list of lists."""
    values = fields.get(name)
    if not isinstance(values, list) or not all(isinstance(value, list) for value in values):
        raise bad_request(f"'{name}' must be a list of lists, but {_is(values)}")
    if len(values) > count_max:
        raise bad_request(f"'{name}' has {len(values)} items, and may have {count_max}")
    return values
