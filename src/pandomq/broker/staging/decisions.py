"""Which batches are decided, and which of them are still being published: what the log says of them.

It changes by commands only. Of each query the last batch is remembered; batches rise. Who was silent for long is
forgotten, and so is the first when there are too many: which ones is in the commands.
"""

from collections import OrderedDict
from collections.abc import Iterator

from pandomq.broker.commands import DecideBatch, FinishBatch

NONE = -1
"""Below every batch."""


class Decisions:
    __slots__ = ("_last", "open")

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], DecideBatch] = OrderedDict()
        """By vhost and query, in the order of the decisions."""
        self.open: dict[tuple[str, str, int], DecideBatch] = {}
        """Those that are not published to their end, in that order, by vhost, query and batch."""

    def __len__(self) -> int:
        return len(self._last)

    def last_batch(self, vhost: str, query: str) -> int:
        """NONE if nothing is known of the query."""
        decided = self._last.get((vhost, query))
        return NONE if decided is None else decided.batch

    def chosen(self, vhost: str) -> set[str]:
        """The queues whose parts are about to be published."""
        return {name for decided in self.open.values() if decided.vhost == vhost for name in decided.attempts}

    def oldest_first(self) -> Iterator[DecideBatch]:
        """The last decision of each query."""
        return iter(self._last.values())

    def apply(self, command: DecideBatch | FinishBatch) -> None:
        key = (command.vhost, command.query)
        if isinstance(command, FinishBatch):
            decided = self.open.pop((*key, command.batch))
            if self._last.get(key) is decided:
                # Which attempts they were is of no interest any more.
                self._last[key] = DecideBatch(*key, decided.batch, [], decided.now_ms)
            return
        self._last[key] = command
        self._last.move_to_end(key)
        if command.attempts:
            self.open[command.vhost, command.query, command.batch] = command
        for forgotten in command.forgotten:
            self._last.pop(forgotten, None)

    def forget_vhost(self, vhost: str) -> None:
        for key in [key for key in self._last if key[0] == vhost]:
            del self._last[key]
        for open_key in [key for key in self.open if key[0] == vhost]:
            del self.open[open_key]

    def commands(self) -> Iterator[DecideBatch]:
        """Those that make it what it is."""
        for (vhost, query), decided in self._last.items():
            if (vhost, query, decided.batch) not in self.open:
                yield DecideBatch(vhost, query, decided.batch, [], decided.now_ms)
        for decided in self.open.values():
            yield DecideBatch(decided.vhost, decided.query, decided.batch, decided.attempts, decided.now_ms)
