"""Sizes and times as people write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.cli.config import units

AMOUNTS = st.integers(min_value=0, max_value=2**62)


def refusal_of(parse: Callable[[str], int], text: str) -> str | None:
    try:
        parse(text)
    except ValueError as error:
        return str(error)
    return None


@given(AMOUNTS)
def test_a_size_that_is_shown_reads_back(size: int) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == size


@given(AMOUNTS)
def test_a_time_that_is_shown_reads_back(time: int) -> None:
    assert units.parse_ms(units.format_ms(time)) == time
    assert units.parse_s(units.format_s(time)) == time


@given(AMOUNTS, st.sampled_from(sorted(units.BYTE_UNITS)))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str) -> None:
    expected = number * units.BYTE_UNITS[unit]
    assert units.parse_bytes(f"{number}{unit}") == expected
    assert units.parse_bytes(f" {number} {unit.lower()} ") == expected


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_clear_refusal(text: str) -> None:
    for parse in (units.parse_bytes, units.parse_ms, units.parse_s):
        words = refusal_of(parse, text)
        assert words is None or text in words


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("131072", 131072), ("64MiB", 64 * 1024**2), ("1GB", 10**9), ("1.5 KiB", 1536), ("0.5gib", 2**29)],
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_bytes(text) == size


@pytest.mark.parametrize(("text", "time_ms"), [("250", 250), ("30s", 30_000), ("5min", 300_000), ("1.5h", 5_400_000)])
def test_times(text: str, time_ms: int) -> None:
    assert units.parse_ms(text) == time_ms


def test_a_bare_number_is_in_the_unit_of_the_key() -> None:
    assert units.parse_ms("30") == 30
    assert units.parse_s("30") == 30


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1e3", "12parsecs", "1 2", "0.3B", "١٢"])
def test_malformed_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a"):
        units.parse_bytes(text)


def test_half_a_millisecond_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'0\.5ms' is not a whole number of ms"):
        units.parse_ms("0.5ms")
    with pytest.raises(ValueError, match="'1500ms' is not a whole number of s"):
        units.parse_s("1500ms")


def test_a_share_is_of_the_whole() -> None:
    assert units.parse_bytes("60%", whole_bytes=1000 * 1024**2) == 600 * 1024**2
    with pytest.raises(ValueError, match="at most 100"):
        units.parse_bytes("101%", whole_bytes=2**30)
    with pytest.raises(ValueError, match="is not a size"):
        units.parse_bytes("60%")
