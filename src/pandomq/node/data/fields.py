"""Reads what a request says, and refuses what it does not say."""

from __future__ import annotations

from typing import Any

from pandomq.data_form import Fields
from pandomq.node.data.refusals import bad_request

NUMBER_MAX = 2**63 - 1


def text(fields: Fields, name: str, bytes_max: int = 255) -> str:
    """Raises Refused (400), as do all below."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise bad_request(f"'{name}' should be a text")
    if len(value.encode("utf-8", "surrogatepass")) > bytes_max:
        raise bad_request(f"'{name}' is longer than {bytes_max} bytes")
    return value


def number(fields: Fields, name: str, most: int = NUMBER_MAX, default: int | None = None) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise bad_request(f"'{name}' should be a number")
    if not 0 <= value <= most:
        raise bad_request(f"'{name}' should be between 0 and {most}")
    return value


def rows(fields: Fields, name: str, count_max: int) -> list[list[Any]]:
    """A list of lists."""
    values = fields.get(name)
    if not isinstance(values, list) or not all(isinstance(value, list) for value in values):
        raise bad_request(f"'{name}' should be a list of lists")
    if len(values) > count_max:
        raise bad_request(f"'{name}' has more than {count_max} items")
    return values
