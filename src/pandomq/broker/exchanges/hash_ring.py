"""A ring of hash values, divided among members by weight.

Each member owns points on the ring that depend on its own identity alone, in proportion to its weight; a value belongs
to the owner of the next point. So the ring is a function of its members, not of their history; adding or removing one
moves only the values that it gets or had. (Above POINTS_MAX points all members' are halved in number; then more moves.)
"""

from bisect import bisect_left
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from struct import Struct
from typing import Final, Generic, TypeVar

POINTS_PER_WEIGHT: Final = 128
"""Shares then differ from the weights by about a tenth of themselves, and less with larger weights."""
POINTS_MAX: Final = 2**16

_DIGEST: Final = Struct(">8Q")

_Member = TypeVar("_Member")


class HashRing(Generic[_Member]):
    def __init__(self) -> None:
        self._members: dict[_Member, tuple[bytes, int]] = {}
        self._weight_total = 0
        self._density: float = POINTS_PER_WEIGHT
        self._owners: dict[int, _Member] = {}
        # The sorted keys of _owners, updated before use: until then there may be some too many, and new ones at the
        # end. (A list that is sorted but for its end is sorted quickly.)
        self._points: list[int] = []
        self._surplus = False
        self._unsorted = False

    def add(self, member: _Member, identity: bytes, weight: int) -> None:
        assert member not in self._members
        assert weight > 0
        self._members[member] = (identity, weight)
        self._weight_total += weight
        if not self._density_changed():
            self._place(member, identity, weight)

    def remove(self, member: _Member) -> None:
        identity, weight = self._members.pop(member)
        self._weight_total -= weight
        if not self._density_changed():
            for point in self._points_of(identity, weight):
                if self._owners.get(point) is member:
                    del self._owners[point]
            self._surplus = True

    def find(self, value: int) -> _Member | None:
        """The member that a 64-bit value belongs to; None if the ring is empty."""
        self._drop_surplus()
        if self._unsorted:
            self._points.sort()
            self._unsorted = False
        points = self._points
        if not points:
            return None
        place = bisect_left(points, value)
        return self._owners[points[place] if place < len(points) else points[0]]

    def _density_changed(self) -> bool:
        density: float = POINTS_PER_WEIGHT
        while self._weight_total * density > POINTS_MAX:
            density /= 2
        if density == self._density:
            return False
        self._density = density
        self._owners.clear()
        self._points.clear()
        for member, (identity, weight) in self._members.items():
            self._place(member, identity, weight)
        return True

    def _place(self, member: _Member, identity: bytes, weight: int) -> None:
        self._drop_surplus()
        for point in self._points_of(identity, weight):
            # Two members hardly ever meet in one of 2^64 points; if so the first keeps it.
            if point not in self._owners:
                self._owners[point] = member
                self._points.append(point)
        self._unsorted = True

    def _drop_surplus(self) -> None:
        if self._surplus:
            self._points = [point for point in self._points if point in self._owners]
            self._surplus = False

    def _points_of(self, identity: bytes, weight: int) -> Iterator[int]:
        return islice(_endless_points(identity), max(1, int(weight * self._density)))


def hash_value(octets: bytes) -> int:
    """A hash of 64 bits, the same on every machine and in every process."""
    return int.from_bytes(blake2b(octets, digest_size=8).digest(), "big")


def _endless_points(identity: bytes) -> Iterator[int]:
    block = 0
    while True:
        yield from _DIGEST.unpack(blake2b(identity + block.to_bytes(8, "big"), digest_size=64).digest())
        block += 1
