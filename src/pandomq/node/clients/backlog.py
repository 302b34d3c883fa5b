"""Clients' requests that are not handled yet, because the clients must first read the answers that they have.

A short request may have a long answer, and many of them come in one read: a client that does not read its answers gets
no more of them. Its socket is not read from meanwhile, so that at most a few reads per client wait here.
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
        """Takes what the broker left of a batch."""
        for client, inputs in rest:
            self._waiting.setdefault(client, []).extend(inputs)

    def join(self, gathered: Batch) -> Batch:
        """The next batch: waiting inputs that may continue, then new inputs, unless older ones of that client still
        wait."""
        if not self._waiting:
            return gathered
        for client in self._waiting:
            # The message that the client waits for may have changed by now, and has to be requested again.
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
        """A client that waited may continue."""
        return bool(self._waiting) and any(self._may_go_on(client) for client in self._waiting)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, client: object) -> bool:
        return client in self._waiting
