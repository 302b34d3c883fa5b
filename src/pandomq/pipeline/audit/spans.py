"""Ranges of indexes, both ends included, in order and apart from each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Ranges that touch or overlap become one."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if first > last:
            continue
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def without(spans: Iterable[Span], taken: Sequence[Span]) -> list[Span]:
    """The rest of the first without the second, which are `joined`."""
    left: list[Span] = []
    for first, last in spans:
        for begin, end in taken:
            if end < first:
                continue
            if begin > last:
                break
            if first < begin:
                left.append((first, begin - 1))
            first = end + 1
        if first <= last:
            left.append((first, last))
    return left


def size(spans: Iterable[Span]) -> int:
    return sum(last - first + 1 for first, last in spans)


def words(spans: Sequence[Span], limit: int = 5) -> str:
    named = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in spans[:limit])
    return f"{named} and {len(spans) - limit} more ranges" if len(spans) > limit else named
