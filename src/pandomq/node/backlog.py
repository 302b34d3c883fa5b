"""What clients asked for and is not handled yet, because they have to take the answers they have first.

A short question may have a long answer, and many of them come in one read: who does not take its answers is not given
more of them. Its sockets are not read from meanwhile, so that what waits here is a few reads at most for each client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.broker.broker import Input
    from pandomq.broker.client import Client

Batch = list[tuple["Client", "Sequence[Input]"]]


class Backlog:
    __slots__ = ("_may_go_on", "_waiting")

    def __init__(self, may_go_on: Callable[[Client], bool]) -> None:
        self._may_go_on = may_go_on
        self._waiting: dict[Client, list[Input]] = {}

    def add(self, rest: Iterable[tuple[Client, Sequence[Input]]]) -> None:
        """What the broker left of a batch."""
        for client, inputs in rest:
            self._waiting.setdefault(client, []).extend(inputs)

    def join(self, gathered: Batch) -> Batch:
        """The next batch: what waited and may go on, then what is new, unless something of that client still waits."""
        if not self._waiting:
            return gathered
        for client in self._waiting:
            # Whatever keeps a message from it may be another thing by now: the one that has to be asked for again.
            client.ask_again()
        batch: Batch = [(client, inputs) for client, inputs in self._waiting.items() if self._may_go_on(client)]
        for client, _ in batch:
            del self._waiting[client]
        for client, inputs in gathered:
            if client in self._waiting:
                self._waiting[client].extend(inputs)
            else:
                batch.append((client, inputs))
        return batch

    def clients(self) -> list[Client]:
        return list(self._waiting)

    @property
    def ready(self) -> bool:
        """Somebody who waited may go on."""
        return bool(self._waiting) and any(self._may_go_on(client) for client in self._waiting)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, client: object) -> bool:
        return client in self._waiting
