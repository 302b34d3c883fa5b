"""The voters. While a change is under way there are two sets, and both must agree (joint consensus).

Between the old and the new set there is always a moment when only some brokers know of the change. If the two sets
could decide independently in that moment there could be two roots. So the log first gets "old and new", and only when
both sets have committed that does it get "new".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

import msgspec

from pandomq.ids import NodeName
from pandomq.replica.limits import MEMBERSHIPS_CACHED
from pandomq.replica.members import quorum


class Member(msgspec.Struct, frozen=True, array_like=True):
    name: NodeName
    address: str = ""
    """The address at which its peers connect to it; opaque here."""


class Membership(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    voters: tuple[Member, ...]
    incoming: tuple[Member, ...] = ()
    """The new set while a change is under way, otherwise empty."""

    @property
    def joint(self) -> bool:
        return bool(self.incoming)

    @property
    def sets(self) -> tuple[tuple[NodeName, ...], ...]:
        """One set of names, or two."""
        return _sets(self)

    @property
    def names(self) -> frozenset[NodeName]:
        return _names(self)

    @property
    def members(self) -> dict[NodeName, Member]:
        return {member.name: member for member in (*self.voters, *self.incoming)}

    def has_elected(self, granted: Collection[NodeName]) -> bool:
        return all(sum(name in granted for name in names) >= quorum.elect_need(len(names)) for names in self.sets)

    def reached(self, values: Mapping[NodeName, int], need: Callable[[int], int]) -> int:
        """The largest number that in each set the needed count of members has reached, for that set's size. A name
        without a value has reached nothing."""
        least = None
        for names in self.sets:
            reached = quorum.reached_by([values.get(name, -1) for name in names], need(len(names)))
            least = reached if least is None or reached < least else least
        assert least is not None
        return least

    def toward(self, members: tuple[Member, ...]) -> Membership:
        """The first half of a change."""
        assert not self.joint and members
        return Membership(self.voters, members)

    def settled(self) -> Membership:
        """The second half."""
        assert self.joint
        return Membership(self.incoming)


# Called with every acknowledgement, and rarely changed.
@lru_cache(maxsize=MEMBERSHIPS_CACHED)
def _sets(membership: Membership) -> tuple[tuple[NodeName, ...], ...]:
    voters = tuple(member.name for member in membership.voters)
    incoming = tuple(member.name for member in membership.incoming)
    return (voters, incoming) if incoming else (voters,)


@lru_cache(maxsize=MEMBERSHIPS_CACHED)
def _names(membership: Membership) -> frozenset[NodeName]:
    return frozenset(member.name for member in (*membership.voters, *membership.incoming))
