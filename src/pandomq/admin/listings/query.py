"""The parameters of a listing in a query string: page, filter by name, order, columns; as in RabbitMQ."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import thread_time
from typing import Any, Final, TypeVar

import msgspec

from pandomq.admin import limits
from pandomq.admin.listings.name_filter import name_filter
from pandomq.admin.listings.table import CachedRow, Listing
from pandomq.admin.refusals import Refusal, bad_request

V = TypeVar("V")
R = TypeVar("R")

_PLAIN_COLUMNS: Final = (
    "arguments",
    "auto_delete",
    "durable",
    "exclusive",
    "internal",
    "name",
    "node",
    "state",
    "type",
    "vhost",
)
"""The columns that remain with disable_stats."""
_TOTALS: Final = ("messages", "messages_ready", "messages_unacknowledged")


class PageParameters(msgspec.Struct, frozen=True):
    number: int
    size: int
    name: str
    use_regex: bool


class ListQuery(msgspec.Struct, frozen=True):
    page: PageParameters | None
    sort: str
    sort_reverse: bool
    columns: tuple[str, ...]

    def unpaged(self) -> ListQuery:
        """For listings that RabbitMQ never pages."""
        return msgspec.structs.replace(self, page=None)


def read_query(parameters: Mapping[str, str]) -> ListQuery:
    """Raises Refusal (400)."""
    columns = tuple(filter(None, parameters.get("columns", "").split(",")))
    if not columns and parameters.get("disable_stats") == "true":
        columns = _PLAIN_COLUMNS + (_TOTALS if parameters.get("enable_queue_totals") == "true" else ())
    return ListQuery(
        page=_read_page(parameters),
        sort=parameters.get("sort", ""),
        sort_reverse=parameters.get("sort_reverse") == "true",
        columns=columns,
    )


def _read_page(parameters: Mapping[str, str]) -> PageParameters | None:
    if "page" not in parameters:
        return None
    name = parameters.get("name", "")
    use_regex = parameters.get("use_regex", "").lower() == "true"
    try:
        number, size = int(parameters["page"]), int(parameters.get("page_size", limits.PAGE_SIZE))
    except ValueError:
        raise bad_request("Pagination parameters are invalid") from None
    name_filter(name, use_regex=use_regex)
    if number < 1 or not 1 <= size <= limits.PAGE_SIZE_MAX:
        shown = parameters.get("page_size", "undefined")
        reason = f"Invalid pagination parameters: page number {number}, page size {shown}"
        raise Refusal(400, "invalid_pagination_parameters", reason)
    return PageParameters(number, size, name, use_regex)


async def render(entries: Sequence[CachedRow[V, R]], query: ListQuery) -> Listing:
    """Raises Refusal (400) for a page that does not exist."""
    page = query.page
    total_count = len(entries)
    if page is not None and page.name:
        entries = await _named(entries, page)
    if query.sort:
        entries = _sorted(entries, query.sort)
    if query.sort_reverse:
        entries = entries[::-1]
    if page is None:
        return Listing(_joined(b"[", await _encode(entries, query.columns), b"]"))
    first = (page.number - 1) * page.size
    if first >= len(entries) and first:
        reason = f"Page out of range, page: {page.number} page size: {page.size}, len: {len(entries)}"
        raise Refusal(400, "page_out_of_range", reason)
    shown = entries[first : first + page.size]
    head = {
        "filtered_count": len(entries),
        "item_count": len(shown),
        "page": page.number,
        "page_count": max(1, -(-len(entries) // page.size)),
        "page_size": page.size,
        "total_count": total_count,
    }
    items = await _encode(shown, query.columns)
    return Listing(_joined(msgspec.json.encode(head)[:-1] + b',"items":[', items, b"]}"))


async def _named(entries: Sequence[CachedRow[V, R]], page: PageParameters) -> list[CachedRow[V, R]]:
    keep = name_filter(page.name, use_regex=page.use_regex)
    found: list[CachedRow[V, R]] = []
    left_s = limits.NAME_FILTER_S_MAX
    for start in range(0, len(entries), limits.FILTER_SLICE_ROWS):
        begun_s = thread_time()
        slice_ = entries[start : start + limits.FILTER_SLICE_ROWS]
        found += [entry for entry in slice_ if keep(str(_value_at(entry.row, ("name",))))]
        left_s -= thread_time() - begun_s
        if left_s < 0:
            raise bad_request("the regular expression takes too long to evaluate: simplify it")
        await asyncio.sleep(0)
    return found


def _sorted(entries: Sequence[CachedRow[V, R]], path: str) -> list[CachedRow[V, R]]:
    names = path.split(".")

    def sort_key(entry: CachedRow[V, R]) -> tuple[int, Any]:
        value = _value_at(entry.row, names)
        # Values that are not comparable are in groups: null, numbers, text, the rest.
        if value is None or value is msgspec.UNSET:
            return 0, 0
        if isinstance(value, int | float):
            return 1, value
        return (2, value) if isinstance(value, str) else (3, str(value))

    return sorted(entries, key=sort_key)


async def _encode(entries: Sequence[CachedRow[V, R]], columns: tuple[str, ...]) -> list[bytes]:
    paths = [column.split(".") for column in columns]
    encoded: list[bytes] = []
    for start in range(0, len(entries), limits.SLICE_ROWS):
        slice_ = entries[start : start + limits.SLICE_ROWS]
        if start:
            await asyncio.sleep(0)
        if paths:
            encoded += [msgspec.json.encode(_project(entry.row, paths)) for entry in slice_]
        else:
            encoded += [entry.encoded for entry in slice_]
    return encoded


def _joined(before: bytes, items: list[bytes], after: bytes) -> bytes:
    # At once: a long listing is megabytes, and each copy of it costs a millisecond.
    if not items:
        return before + after
    items[0] = before + items[0]
    items[-1] += after
    return b",".join(items)


def select(row: object, columns: tuple[str, ...]) -> object:
    """One object with only these columns, or all of it if there are none."""
    return _project(row, [column.split(".") for column in columns]) if columns else row


def _project(row: object, paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    projected: dict[str, Any] = {}
    for path in paths:
        value = _value_at(row, path)
        if value is msgspec.UNSET:
            continue
        inner = projected
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                break
        else:
            inner[path[-1]] = value
    return projected


def _value_at(row: object, path: Sequence[str]) -> Any:
    value: Any = row
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name, msgspec.UNSET)
        elif isinstance(value, msgspec.Struct):
            value = getattr(value, _attribute(type(value), name), msgspec.UNSET)
        else:
            return msgspec.UNSET
    return value


def _attribute(struct: type[msgspec.Struct], name: str) -> str:
    """The attribute with this name in JSON; an empty text if there is none."""
    known = _NAMES.get(struct)
    if known is None:
        known = dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))
        _NAMES[struct] = known
    return known.get(name, "")


_NAMES: dict[type[msgspec.Struct], dict[str, str]] = {}
