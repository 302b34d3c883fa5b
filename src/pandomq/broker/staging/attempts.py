"""Finds staged attempts by query, and counts those of each user, without a look at anybody else's.

The index changes with the inner queues of attempts, on every broker. Sizes are needed at the root alone: the first
question about them counts them all, and from then on the root notes each change, until an entry is replayed.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pandomq.broker.staging.names import StagingAttempt, attempt_of

if TYPE_CHECKING:
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost

Key = tuple[str, str, str]
"""Vhost, user, query."""


class _OfUser:
    __slots__ = ("count", "size_bytes")

    def __init__(self) -> None:
        self.count = 0
        self.size_bytes = 0


class StagingAttempts:
    __slots__ = ("_of_queries", "_of_users", "_sizes", "_sizes_known", "count")

    def __init__(self) -> None:
        self._of_queries: dict[Key, dict[Queue, StagingAttempt]] = {}
        self._of_users: dict[str, _OfUser] = {}
        self._sizes: dict[Queue, int] = {}
        """The counted size of each attempt; without an attempt that has none."""
        self._sizes_known = False
        self.count = 0
        """The number of attempts of all users."""

    @property
    def size_bytes(self) -> int:
        self._know_sizes()
        return sum(user.size_bytes for user in self._of_users.values())

    def count_of(self, user: str) -> int:
        known = self._of_users.get(user)
        return 0 if known is None else known.count

    def bytes_of(self, user: str) -> int:
        """The size of the parts of this user that are not published."""
        self._know_sizes()
        known = self._of_users.get(user)
        return 0 if known is None else known.size_bytes

    def of_query(self, vhost: str, user: str, query: str) -> list[tuple[StagingAttempt, "Queue"]]:
        """The user's attempts, of all batches."""
        found = self._of_queries.get((vhost, user, query), {})
        return [(attempt, queue) for queue, attempt in found.items()]

    # The attempts' queues come and go; others are ignored.

    def add(self, queue: "Queue") -> None:
        attempt = attempt_of(queue.name) if queue.inner else None
        if attempt is None:
            return
        self._of_queries.setdefault((queue.vhost.name, queue.user, attempt.query), {})[queue] = attempt
        self._of_users.setdefault(queue.user, _OfUser()).count += 1
        self.count += 1

    def remove(self, queue: "Queue") -> None:
        attempt = attempt_of(queue.name) if queue.inner else None
        if attempt is None:
            return
        key = (queue.vhost.name, queue.user, attempt.query)
        of_query = self._of_queries[key]
        del of_query[queue]
        if not of_query:
            del self._of_queries[key]
        of_user = self._of_users[queue.user]
        of_user.count -= 1
        self.count -= 1
        of_user.size_bytes -= self._sizes.pop(queue, 0)
        if not of_user.count:
            del self._of_users[queue.user]

    # Sizes.

    def resized(self, queue: "Queue") -> None:
        """At the root: an attempt has gained a part, or one was published."""
        if self._sizes_known:
            self._note_size(queue)

    def replayed(self) -> None:
        """Attempts may have other sizes."""
        self._sizes_known = False

    def _know_sizes(self) -> None:
        if self._sizes_known:
            return
        self._sizes_known = True
        for queue in self._queues():
            self._note_size(queue)

    def _note_size(self, queue: "Queue") -> None:
        size_bytes = queue.kernel.ready_bytes
        self._of_users[queue.user].size_bytes += size_bytes - self._sizes.get(queue, 0)
        self._sizes[queue] = size_bytes

    def _queues(self) -> Iterator["Queue"]:
        for of_query in self._of_queries.values():
            yield from of_query

    # For tests.

    def check(self, vhosts: "Iterable[Vhost]") -> None:
        """Compares everything with a recount of the queues there are."""
        queries: dict[Key, dict[Queue, StagingAttempt]] = {}
        users: dict[str, list[Queue]] = {}
        for vhost in vhosts:
            for queue in vhost.inner_queues.values():
                attempt = attempt_of(queue.name)
                if attempt is not None:
                    queries.setdefault((vhost.name, queue.user, attempt.query), {})[queue] = attempt
                    users.setdefault(queue.user, []).append(queue)
        assert self._of_queries == queries
        assert self.count == sum(map(len, users.values()))
        assert {user: known.count for user, known in self._of_users.items()} == {
            user: len(queues) for user, queues in users.items()
        }
        if self._sizes_known:
            assert {user: known.size_bytes for user, known in self._of_users.items()} == {
                user: sum(queue.kernel.ready_bytes for queue in queues) for user, queues in users.items()
            }
