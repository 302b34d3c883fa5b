"""The bytes of incomplete messages that connections have sent: those of each user, and all of them together.

`wire` bounds those of one connection; this bounds the sums, which thousands of connections could otherwise drive beyond
all memory. Past the bound of a user that user's connection that has the most is closed. Past the bound of all, the user
with the most loses the connection that has the most: however many connections one user opens, those of others are
closed only if their own user has more. No connection is held back for it, since a connection that is not read from
could never complete its message.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pandomq.errors import ConnectionFault, resource_error
from pandomq.limits import INCOMPLETE_MEMORY_PARTS, INCOMPLETE_MESSAGES_MAX

if TYPE_CHECKING:
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.settings import NodeSettings


def _user(link: ClientLink) -> str:
    return "" if link.client is None else link.client.user


class IncompleteMessages:
    """Counts of a frame and less are left out: every connection may have that much, as most do after a read."""

    __slots__ = ("_bytes_max", "_bytes_of", "_of_user", "_of_user_max", "_users", "fault", "total_bytes")

    def __init__(self, settings: NodeSettings) -> None:
        self._bytes_of: dict[ClientLink, int] = {}
        self._users: dict[ClientLink, str] = {}
        """The users of the same links: one that is being closed may have no client any more."""
        self._of_user: Counter[str] = Counter()
        self.total_bytes = 0
        self.fault: ConnectionFault = resource_error("partly received messages take too much memory")
        """The fault for the connection that is closed."""
        self.change_settings(settings)

    def change_settings(self, settings: NodeSettings) -> None:
        of_one = INCOMPLETE_MESSAGES_MAX * (settings.message_bytes_max + settings.frame_bytes_max)
        self._bytes_max = max(of_one, settings.memory_bytes_max // INCOMPLETE_MEMORY_PARTS)
        of_user_max = settings.incomplete_per_user_bytes_max
        self._of_user_max = max(of_one, of_user_max) if of_user_max else self._bytes_max

    def received(self, link: ClientLink) -> ClientLink | None:
        """To be called after each read; returns the connection that must be closed for it, if there is one."""
        count = link.connection.incomplete_bytes
        if count <= link.connection.agreed.frame_max:
            count = 0
        before = self._bytes_of.get(link, 0)
        if count == before:
            return None
        user = self._users.setdefault(link, _user(link))
        self._count(link, count - before)
        if count < before:
            return None
        if self.total_bytes > self._bytes_max:
            self.fault = resource_error(
                f"partly received messages of all connections take more than {self._bytes_max} bytes"
            )
            return max(self._bytes_of, key=lambda one: (self._of_user[self._users[one]], self._bytes_of[one]))
        if self._of_user[user] > self._of_user_max:
            self.fault = resource_error(
                f"partly received messages of user '{user}' take more than {self._of_user_max} bytes: "
                "incomplete_per_user_bytes_max is reached"
            )
            return max((one for one, whose in self._users.items() if whose == user), key=self._bytes_of.__getitem__)
        return None

    def forget(self, link: ClientLink) -> None:
        if link in self._bytes_of:
            self._count(link, -self._bytes_of[link])

    def _count(self, link: ClientLink, more_bytes: int) -> None:
        user = self._users[link]
        self.total_bytes += more_bytes
        self._of_user[user] += more_bytes
        self._bytes_of[link] = self._bytes_of.get(link, 0) + more_bytes
        if not self._bytes_of[link]:
            del self._bytes_of[link], self._users[link]
        if not self._of_user[user]:
            del self._of_user[user]
