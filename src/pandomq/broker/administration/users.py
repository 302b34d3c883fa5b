"""Users: their credentials, their tags, and their limits."""

from collections.abc import Mapping
from typing import Final

import msgspec

ADMINISTRATOR: Final = "administrator"
IMPERSONATOR: Final = "impersonator"
"""May send messages under the names of other users."""


class User(msgspec.Struct, frozen=True):
    """Its permissions are stored with their vhosts."""

    name: str
    password_hash: str
    hashing: str
    tags: tuple[str, ...] = ()
    limits: Mapping[str, int] = msgspec.field(default_factory=dict)


def changed_limits(limits: Mapping[str, int], changes: Mapping[str, int | None]) -> Mapping[str, int]:
    """For a user or a vhost: None removes a limit."""
    merged: dict[str, int | None] = {**limits, **changes}
    return {name: value for name, value in merged.items() if value is not None}
