"""Field tables as JSON, and back.

JSON has fewer types than a field table: numbers of any width become numbers, octets that are not text become text with
a mark in place of each undecodable byte. From JSON numbers become 64 bits wide, as in RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from pandomq.admin.refusals import bad_request
from pandomq.fieldtable import FieldTable
from pandomq.limits import FIELD_TABLE_DEPTH_MAX, SHORT_STRING_BYTES_MAX

_INT64_MAX: Final = 2**63 - 1


def json_table(table: Mapping[str, Any]) -> dict[str, Any]:
    return {json_text(key): _json_value(value) for key, value in table.items()} if table else {}


def json_text(text: str) -> str:
    """Text with surrogates, which stand for octets that are not UTF-8, cannot be written as JSON."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _json_value(value: Any) -> Any:
    if isinstance(value, str):
        return json_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    return json_table(value)


def amqp_table(value: Any, depth: int = 0) -> FieldTable:
    """Raises Refusal (400) for a value that no field table can hold. [] counts as an empty table, as in RabbitMQ."""
    if value == []:
        return {}
    if not isinstance(value, dict):
        raise bad_request(["not_a_table", value])
    for key in value:
        if len(key.encode()) > SHORT_STRING_BYTES_MAX:
            raise bad_request(f"a key of a table is longer than {SHORT_STRING_BYTES_MAX} bytes")
    return {key: _amqp_value(item, depth + 1) for key, item in value.items()}


def _amqp_value(value: Any, depth: int) -> Any:
    # One level less than the reading limit, for the list or table around it.
    if depth >= FIELD_TABLE_DEPTH_MAX - 1:
        raise bad_request(f"nested deeper than {FIELD_TABLE_DEPTH_MAX - 1}")
    if isinstance(value, dict):
        return amqp_table(value, depth)
    if isinstance(value, list):
        return [_amqp_value(item, depth + 1) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -_INT64_MAX - 1 <= value <= _INT64_MAX:
        raise bad_request(f"{value} does not fit in 64 bits")
    return value
