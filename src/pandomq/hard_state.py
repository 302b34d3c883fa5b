"""The state that must be on disk before a broker sends any message that depends on it: Raft's hard state.

The replica determines it, and the journal stores it.
"""

from typing import Final

import msgspec

from pandomq.limits import KIB

MEMBERSHIP_BYTES_MAX: Final = 12 * KIB


class HardState(msgspec.Struct, frozen=True):
    epoch: int = 0
    epoch_id: str = ""
    """Distinguishes forced promotions that took the same number; empty before the first."""
    term: int = 0
    vote: str | None = None
    """The broker that got this broker's vote in this term."""
    membership: bytes = b""
    """A record of `replica.record`, encoded; empty in a store that belongs to no cluster yet."""

    def __post_init__(self) -> None:
        if len(self.membership) > MEMBERSHIP_BYTES_MAX:
            raise ValueError(f"a membership record has at most {MEMBERSHIP_BYTES_MAX} bytes")
