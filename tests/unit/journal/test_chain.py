"""Replicas compare any range of the log by a number, also when its entries are gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pandomq.journal.chain import ChainPoints
from pandomq.journal.checksums import CHAIN_PRIME, CHAIN_START, chain_next, chain_of_range, entry_checksum
from pandomq.journal.limits import CHAIN_POINTS_MAX

CHECKSUMS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=30)


def chain_of(checksums: list[int], chain: int = CHAIN_START) -> int:
    for checksum in checksums:
        chain = chain_next(chain, checksum)
    return chain


@given(CHECKSUMS, st.data())
def test_one_different_entry_always_shows(checksums: list[int], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(checksums) - 1))
    other = data.draw(st.integers(0, 2**32 - 1).filter(lambda checksum: checksum != checksums[place]))
    changed = [*checksums[:place], other, *checksums[place + 1 :]]
    assert chain_of(checksums) != chain_of(changed)


@given(st.lists(st.integers(0, 2**32 - 1)), CHECKSUMS, st.integers(0, CHAIN_PRIME - 1))
def test_a_range_has_a_value_of_its_own(before: list[int], checksums: list[int], other_start: int) -> None:
    start = chain_of(before)
    value = chain_of_range(start, chain_of(checksums, start), len(checksums))
    assert value == chain_of_range(other_start, chain_of(checksums, other_start), len(checksums))


@given(st.binary(max_size=50), st.integers(1, 2**63), st.integers(0, 2**63))
def test_a_checksum_covers_index_and_term(payload: bytes, index: int, term: int) -> None:
    checksum = entry_checksum(index, term, payload)
    assert checksum != entry_checksum(index + 1, term, payload)
    assert checksum != entry_checksum(index, term + 1, payload)
    assert checksum == entry_checksum(index, term, memoryview(payload))


def test_points_are_bounded_and_depend_on_the_log_alone() -> None:
    points = ChainPoints(2)
    count = 0
    for index in range(1, 8 * CHAIN_POINTS_MAX):
        if index % points.stride == 0:
            points.record(index, index * 3)
        count = max(count, len(points.values))
    assert count <= CHAIN_POINTS_MAX + 1 and points.stride == 8
    assert points.at(0) == CHAIN_START
    assert all(points.at(index) == index * 3 for index in range(8, 8 * CHAIN_POINTS_MAX, 8))
    assert points.at(12) is None and points.at(8 * CHAIN_POINTS_MAX) is None
    again = ChainPoints.decode(points.encode())
    assert (again.stride, again.values) == (points.stride, points.values)
    short = points.up_to(100)
    points.cut(100)
    assert points.values == short.values and points.at(96) == 288 and points.at(104) is None
