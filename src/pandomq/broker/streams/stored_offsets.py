"""The stored offsets of a stream's readers, by name. A name belongs to the user who stored it first."""

from collections import Counter
from collections.abc import Collection
from typing import Final

from pandomq.errors import ChannelFault, access_refused, precondition_failed
from pandomq.limits import SHORT_STRING_BYTES_MAX, STREAM_OFFSET_MAX, STREAM_STORED_OFFSETS_MAX

_NOBODY: Final = ""
"""In logs and snapshots of version 0.1.0 names have no user: the next user that stores under such a name gets it."""

STORED_BYTES: Final = 300
"""Estimate of the memory of a stored offset beside its name: the objects, and its places in the tables."""


class OffsetCounts:
    """The number of stored offsets of each user, and an estimate of the memory of all, in all streams of a broker."""

    __slots__ = ("_of_users", "size_bytes")

    def __init__(self) -> None:
        self._of_users: Counter[str] = Counter()
        self.size_bytes = 0

    def of(self, user: str) -> int:
        return self._of_users[user]

    def owned(self, user: str, more: int) -> None:
        if user:
            self._of_users[user] += more
            if not self._of_users[user]:
                del self._of_users[user]


class StoredOffsets:
    """Names are kept until the stream is deleted. When there are too many, those of readers that retention has
    overtaken make room."""

    __slots__ = ("_count_max", "_counts", "_rows", "_users")

    def __init__(self, counts: OffsetCounts, count_max: int = STREAM_STORED_OFFSETS_MAX) -> None:
        self._counts = counts
        self._count_max = count_max
        self._rows: dict[str, int] = {}
        self._users: dict[str, str] = {}
        """The users that own the names, where they are known."""

    def refusal(
        self,
        name: str,
        offset: int,
        first_offset: int,
        user: str,
        users: Collection[str],
        of_user_max: int,
        of_user_total_max: int,
    ) -> ChannelFault | None:
        """Why this user cannot store this. `users` are those that exist: names of deleted users are free. One user has
        `of_user_max` names here and `of_user_total_max` in all streams at most; 0: any number."""
        try:
            size_bytes = len(name.encode())
        except UnicodeEncodeError:
            size_bytes = 0
        if not 0 < size_bytes <= SHORT_STRING_BYTES_MAX:
            return precondition_failed(
                f"the name of a stored offset must have 1 to {SHORT_STRING_BYTES_MAX} bytes of UTF-8"
            )
        if not 0 <= offset <= STREAM_OFFSET_MAX:
            return precondition_failed(f"{offset} is not an offset")
        owner = self._users.get(name, _NOBODY)
        if owner not in (_NOBODY, user) and owner in users:
            return access_refused(f"the offset stored as '{name}' does not belong to user '{user}'")
        if owner != user and len([known for known in self._users.values() if known == user]) >= of_user_max > 0:
            return precondition_failed(
                f"user '{user}' has stored offsets of this stream under {of_user_max} names: "
                "stored_offsets_per_user_max is reached"
            )
        if owner != user and self._counts.of(user) >= of_user_total_max > 0:
            return precondition_failed(
                f"user '{user}' has stored offsets under {of_user_total_max} names in all streams: "
                "stored_offsets_per_user_total_max is reached"
            )
        full = name not in self._rows and len(self._rows) >= self._count_max
        if full and not any(known < first_offset for known in self._rows.values()):
            return precondition_failed(
                f"the stream has stored offsets under {self._count_max} names, which is the limit"
            )
        return None

    def store(self, name: str, offset: int, first_offset: int, user: str = _NOBODY) -> None:
        if name not in self._rows and len(self._rows) >= self._count_max:
            for known in [known for known, at in self._rows.items() if at < first_offset]:
                self._drop(known)
        if name not in self._rows:
            self._counts.size_bytes += STORED_BYTES + len(name)
        self._rows[name] = offset
        if user:
            self._counts.owned(self._users.get(name, _NOBODY), -1)
            self._counts.owned(user, 1)
            self._users[name] = user

    def _drop(self, name: str) -> None:
        del self._rows[name]
        self._counts.size_bytes -= STORED_BYTES + len(name)
        self._counts.owned(self._users.pop(name, _NOBODY), -1)

    def close(self) -> None:
        """The stream was deleted."""
        for name in list(self._rows):
            self._drop(name)

    def get(self, name: str) -> int | None:
        return self._rows.get(name)

    def copy(self) -> dict[str, int]:
        return dict(self._rows)

    def users(self) -> dict[str, str]:
        """The user by name, where one is known; a copy."""
        return dict(self._users)
