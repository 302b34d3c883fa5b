"""Pages, orders and columns against an obvious second definition."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq.admin.listings.name_filter import name_filter
from pandomq.admin.listings.query import read_query, select
from pandomq.admin.listings.tables import render_rows
from pandomq.admin.refusals import Refusal


class Inner(msgspec.Struct, frozen=True):
    count: int | None


class Row(msgspec.Struct, frozen=True, rename={"odd_name": "odd-name"}):
    name: str
    odd_name: Any
    inner: Inner | msgspec.UnsetType = msgspec.UNSET


rows = st.lists(
    st.builds(
        Row,
        st.text("abAB.", min_size=1, max_size=4),
        st.none() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("xy", max_size=2) | st.booleans(),
        st.just(msgspec.UNSET) | st.builds(Inner, st.none() | st.integers(0, 3)),
    ),
    max_size=12,
)


def listed(some: list[Row], **parameters: str) -> Any:
    listing = asyncio.run(render_rows(some, read_query(parameters)))
    return msgspec.json.decode(listing.body)


def plain(some: list[Row]) -> Any:
    return msgspec.to_builtins(some)


@settings(max_examples=40)
@given(rows)
def test_everything_in_its_order(some: list[Row]) -> None:
    assert listed(some) == plain(some)
    assert listed(some, sort_reverse="true") == plain(some)[::-1]


@settings(max_examples=40)
@given(rows, st.integers(1, 5))
def test_pages_put_together_are_the_whole(some: list[Row], size: int) -> None:
    first = listed(some, page="1", page_size=str(size))
    assert (first["total_count"], first["filtered_count"]) == (len(some), len(some))
    items = first["items"]
    for page in range(2, first["page_count"] + 1):
        items += listed(some, page=str(page), page_size=str(size))["items"]
    assert items == plain(some)
    with pytest.raises(Refusal):
        listed(some, page=str(first["page_count"] + 1), page_size=str(size))


@settings(max_examples=40)
@given(rows, st.text("abAB.", max_size=2))
def test_a_filter_looks_for_a_part_of_the_name(some: list[Row], part: str) -> None:
    expected = [row for row in plain(some) if part.lower() in row["name"].lower()]
    shown = listed(some, page="1", page_size="500", name=part)
    assert (shown["items"], shown["filtered_count"], shown["total_count"]) == (expected, len(expected), len(some))


@settings(max_examples=40)
@given(rows, st.sampled_from(["name", "odd-name", "inner.count", "nosuch", "name.deeper"]))
def test_any_order_keeps_all_rows_and_sorts_comparable_values(some: list[Row], path: str) -> None:
    shown = listed(some, sort=path)
    assert sorted(map(str, shown)) == sorted(map(str, plain(some)))
    if path == "name":
        assert [row["name"] for row in shown] == sorted(row.name for row in some)
    numbers = [row["odd-name"] for row in shown if isinstance(row["odd-name"], int | float)]
    if path == "odd-name":
        assert numbers == sorted(numbers)


@settings(max_examples=40)
@given(rows)
def test_columns_by_the_names_that_are_written(some: list[Row]) -> None:
    shown = listed(some, columns="odd-name,inner.count,nosuch,odd_name,__class__")
    for row, original in zip(shown, plain(some), strict=True):
        assert row["odd-name"] == original["odd-name"]
        assert row.get("inner") == original.get("inner")
        assert row.keys() <= {"odd-name", "inner"}


def test_columns_that_lead_through_a_value() -> None:
    assert select({"a": 1}, ("a", "a.b")) == {"a": 1}
    assert select({"a": {"b": 1, "c": 2}}, ("a.b", "a.c")) == {"a": {"b": 1, "c": 2}}
    assert select({"a": 1}, ()) == {"a": 1}


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("^ab", "ABC", True),
        ("b$", "ab", True),
        ("^b", "ab", False),
        ("(a|x)b", "ab", True),
        ("(a+)+$", "a" * 255 + "!", False),
        ("a.c", "a\nc", False),
        ("[0-9]{2,3}", "x12", True),
    ],
)
def test_expressions_without_regard_to_case(pattern: str, name: str, found: bool) -> None:
    assert name_filter(pattern, use_regex=True)(name) is found


@pytest.mark.parametrize("pattern", ["[", "(", "*", "a{2,1}", "\\1", "(?P<x>a)(?P=x)", "x" * 257])
def test_expressions_that_are_refused(pattern: str) -> None:
    with pytest.raises(Refusal):
        name_filter(pattern, use_regex=True)
