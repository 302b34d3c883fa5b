"""The quorums. Safety depends on three numbers: any group that elects a root shares a member with any group that
commits an entry, and with any group that keeps a root.

    elect    more than half               two roots of one term would need two such groups
    commit   at least half (D2)           a later root has it from the member they share
    keep     at least half                the root steps down below that
"""

from collections.abc import Iterable


def elect_need(count: int) -> int:
    return count // 2 + 1


def half(count: int) -> int:
    """The smallest number that is not less than half."""
    return (count + 1) // 2


def commit_need(count: int, min_copies: int) -> int:
    """`min_copies` may require more copies than half, never fewer, and never more than there are brokers."""
    return max(half(count), min(min_copies, count))


def reached_by(values: Iterable[int], need: int) -> int:
    """The largest number that at least `need` of the values have reached; -1 if there are fewer values."""
    ordered = sorted(values, reverse=True)
    return ordered[need - 1] if 0 < need <= len(ordered) else -1
