"""Which batches are decided, and which of them are still being published: the log's record of them.

It changes by commands only. A query is a name of a user in a vhost, and of each query the last batch is remembered;
batches rise. A query that was silent for long is forgotten, and so is the first when there are too many: the commands
name them.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pandomq.broker.log.commands import DecideBatch, FinishBatch

NONE: Final = -1
"""Below every batch."""

NOBODY: Final = ""
"""Replaces the user in logs and snapshots of version 0.1.0: there a query belonged to the vhost."""

Key = tuple[str, str, str]
"""Vhost, user, query."""


class Decisions:
    __slots__ = ("_chosen", "_last", "_of_users", "_open_counts", "open")

    def __init__(self) -> None:
        self._last: OrderedDict[Key, DecideBatch] = OrderedDict()
        """The last decisions, in the order of deciding."""
        self._of_users: dict[str, OrderedDict[Key, DecideBatch]] = {}
        """The same rows in the same order, by user."""
        self.open: dict[tuple[str, str, str, int], DecideBatch] = {}
        """Batches that are not published completely, in the order of publishing, by vhost, user, query and batch."""
        self._open_counts: Counter[Key] = Counter()
        self._chosen: set[tuple[str, str]] = set()
        """Vhost and name of the queues whose parts are about to be published."""

    def __len__(self) -> int:
        return len(self._last)

    def last_batch(self, vhost: str, user: str, query: str) -> int:
        """NONE if the query is not known. A user who has decided nothing continues the query of the name in a log of
        version 0.1.0: it may be this user's."""
        decided = self._last.get((vhost, user, query)) or self._last.get((vhost, NOBODY, query))
        return NONE if decided is None else decided.batch

    def find_open(self, vhost: str, user: str, query: str, batch: int) -> DecideBatch | None:
        """The decision of a batch that is not published completely."""
        return self.open.get((vhost, user, query, batch)) or self.open.get((vhost, NOBODY, query, batch))

    def knows(self, key: Key) -> bool:
        return key in self._last

    def is_open(self, key: Key) -> bool:
        """A batch of the query is not published completely."""
        return key in self._open_counts

    def count_of(self, user: str) -> int:
        """How many queries of this user are remembered."""
        return len(self._of_users.get(user, ()))

    def chose(self, vhost: str, queue: str) -> bool:
        """The parts in this queue are about to be published."""
        return (vhost, queue) in self._chosen

    def oldest_first(self) -> Iterator[DecideBatch]:
        """The last decision of each query."""
        return iter(self._last.values())

    def oldest_of(self, user: str) -> Iterable[DecideBatch]:
        """The same for this user's queries."""
        return self._of_users.get(user, OrderedDict[Key, DecideBatch]()).values()

    def apply(self, command: DecideBatch | FinishBatch) -> None:
        key = key_of(command)
        if isinstance(command, FinishBatch):
            decided = self._close(key, command.batch)
            key = key_of(decided)
            if self._last.get(key) is decided:
                # The attempts are not needed any more. The order stays.
                done = msgspec.structs.replace(decided, attempts=[], forgotten=[], forgotten_of=[])
                self._last[key] = self._of_users[decided.user][key] = done
            return
        self._forget(key)
        self._last[key] = command
        self._of_users.setdefault(command.user, OrderedDict())[key] = command
        if command.attempts:
            self.open[*key, command.batch] = command
            self._open_counts[key] += 1
            self._chosen.update((command.vhost, name) for name in command.attempts)
        if command.forgotten:
            names = set(command.forgotten)
            for known in [known for known in self._last if (known[0], known[2]) in names]:
                self._forget(known)
        for forgotten in command.forgotten_of:
            self._forget(forgotten)

    def _close(self, key: Key, batch: int) -> DecideBatch:
        at = (*key, batch)
        if at not in self.open:
            # Earlier logs name no user here, and have one query of each name.
            at = next(one for one in self.open if (one[0], one[2], one[3]) == (key[0], key[2], batch))
        decided = self.open.pop(at)
        self._open_counts[at[:3]] -= 1
        if not self._open_counts[at[:3]]:
            del self._open_counts[at[:3]]
        self._chosen.difference_update((decided.vhost, name) for name in decided.attempts)
        return decided

    def _forget(self, key: Key) -> None:
        if self._last.pop(key, None) is None:
            return
        of_user = self._of_users[key[1]]
        del of_user[key]
        if not of_user:
            del self._of_users[key[1]]

    def forget_vhost(self, vhost: str) -> None:
        for key in [key for key in self._last if key[0] == vhost]:
            self._forget(key)
        for at in [at for at in self.open if at[0] == vhost]:
            self._close(at[:3], at[3])

    def commands(self) -> Iterator[DecideBatch]:
        """The commands that rebuild it, in the order of the decisions: so both tables get the same order. A batch may
        be open that is not its query's last any more."""
        last = iter(self._last.values())
        for decided in self.open.values():
            if self._last.get(key_of(decided)) is not decided:
                yield _restated(decided)
                continue
            for earlier in last:
                yield _restated(earlier)
                if earlier is decided:
                    break
        yield from map(_restated, last)


def key_of(command: DecideBatch | FinishBatch) -> Key:
    return command.vhost, command.user, command.query


def _restated(decided: DecideBatch) -> DecideBatch:
    """For a table that holds no forgotten query."""
    return msgspec.structs.replace(decided, forgotten=[], forgotten_of=[])
