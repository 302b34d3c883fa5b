"""One broker and its clients, batch by batch: what they said is handled, and who has to wait for its answers waits.

A node has one for the broker whose state is the log's, and another for the one that serves clients elsewhere than at
the root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.node.backlog import Backlog, Batch

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker, Outcome
    from pandomq.broker.client import Client
    from pandomq.node.links import Links


class Desk:
    __slots__ = ("_links", "backlog", "broker")

    def __init__(self, broker: Broker, links: Links) -> None:
        self.broker = broker
        self._links = links
        self.backlog = Backlog(self._may_go_on)

    def has_work(self, gathered: Batch) -> bool:
        return bool(gathered or self.backlog or self.broker.active)

    def handle(self, gathered: Batch, now_ms: int) -> Outcome:
        """The outcome's proposal and those who are to be closed are the caller's."""
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
        """Nothing of it is handled for now."""
        self.backlog.add(gathered)
        for client, _ in gathered:
            link = self._links.of_client.get(client)
            if link is not None:
                self._links.fall_behind(link)

    @property
    def ready(self) -> bool:
        """There is something to do without anything new."""
        return self.broker.active or self.backlog.ready

    def _may_go_on(self, client: Client) -> bool:
        link = self._links.of_client.get(client)
        if client.gone or client.waits or link is None:
            return client.gone or not client.waits
        return not link.writing_paused and client.unwritten_bytes <= self.broker.limits.outgoing_bytes_max
