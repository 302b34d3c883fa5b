"""Names in paths and bodies that become short strings of the protocol."""

from __future__ import annotations

from typing import Any

from pandomq.admin.refusals import bad_request
from pandomq.limits import SHORT_STRING_BYTES_MAX


def short(kind: str, name: str) -> str:
    """The name, if it fits. Raises Refusal (400) with RabbitMQ's text."""
    size = len(name.encode())
    if size > SHORT_STRING_BYTES_MAX:
        raise bad_request(f"{kind} should be less than {SHORT_STRING_BYTES_MAX} bytes, actually was {size}\n")
    return name


def read_tags(given: Any) -> tuple[str, ...]:
    """For a user or a vhost: a list, or RabbitMQ's older form with commas. Raises Refusal (400)."""
    if isinstance(given, str):
        given = [tag.strip() for tag in given.split(",") if tag.strip()]
    if not isinstance(given, list) or not all(isinstance(tag, str) for tag in given):
        raise bad_request("tags is neither a list of strings nor a string")
    return tuple(dict.fromkeys(given))
