"""One broker and its clients, batch by batch: it handles their inputs, and makes clients wait that must first read
answers.

A node has one for the broker whose state is the log's, and another for the one that serves clients elsewhere than at
the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.node.clients.backlog import Backlog, Batch

if TYPE_CHECKING:
    from pandomq.broker.broker import BatchOutcome, Broker
    from pandomq.broker.client import Client
    from pandomq.node.clients.client_links import ClientLinks


class Dispatcher:
    __slots__ = ("_links", "backlog", "broker")

    def __init__(self, broker: Broker, links: ClientLinks) -> None:
        self.broker = broker
        self._links = links
        self.backlog = Backlog(self._may_go_on)

    def has_work(self, gathered: Batch) -> bool:
        return bool(gathered or self.backlog or self.broker.active)

    def handle(self, gathered: Batch, now_ms: int) -> BatchOutcome:
        """The caller handles the outcome's proposal and the clients that are to be closed."""
        waited = self.backlog.clients()
        outcome = self.broker.handle(self.backlog.join(gathered), now_ms)
        self.backlog.add(outcome.rest)
        for client, _ in outcome.rest:
            link = self._links.of_client.get(client)
            if link is not None:
                self._links.fall_behind(link)
        for client in waited:
            link = self._links.of_client.get(client)
            if link is not None and client not in self.backlog:
                self._links.catch_up(link)
        return outcome

    def postpone(self, gathered: Batch) -> None:
        """Handles nothing of it for now."""
        self.backlog.add(gathered)
        for client, _ in gathered:
            link = self._links.of_client.get(client)
            if link is not None:
                self._links.fall_behind(link)

    @property
    def ready(self) -> bool:
        """Whether there is work without any new input."""
        return self.broker.active or self.backlog.ready

    def _may_go_on(self, client: Client) -> bool:
        link = self._links.of_client.get(client)
        if client.gone or client.waits or link is None:
            return client.gone or not client.waits
        return not link.writing_paused and client.unwritten_bytes <= self.broker.limits.outgoing_bytes_max
