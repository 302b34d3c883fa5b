"""Finds the queues of a message through exchanges, their bindings and their alternates, and remembers the way.

One Router a vhost. All bindings change through it, so that it can withdraw the plans that no longer hold.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pandomq.broker.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, QueueDestination
from pandomq.kernel._fast import Plan

if TYPE_CHECKING:
    from random import Random


class Router:
    exchanges: dict[str, Exchange]  # read only for others: add and remove change it

    def __init__(self, find_queue: Callable[[str], QueueDestination | None], random: "Random", plans_max: int) -> None:
        """With the predeclared exchanges. `find_queue` serves the default exchange."""

    def add(self, exchange: Exchange) -> None:
        """A new exchange; plans that missed it (as an alternate) are withdrawn."""

    def remove(self, exchange: Exchange) -> list[Exchange]:
        """The exchange goes, with all bindings from it and to it. Returns the auto-delete exchanges that lost their last binding
        by that; the caller removes them too (and what they leave in turn)."""
        ...

    def bind(self, binding: Binding) -> bool:
        """False if it was there already. (`Exchange.check_binding` comes first, in the handler.)"""
        ...

    def unbind(self, binding: Binding) -> bool:
        """False if it was not there. An auto-delete source with binding_count 0 after this is to be removed by the caller."""
        ...

    def bindings_to(self, destination: Destination) -> list[Binding]:
        """Without the implicit one from the default exchange."""
        ...

    def queue_declared(self, name: str) -> None:
        """A queue now exists: plans of the default exchange for its name are withdrawn."""

    def queue_deleted(self, queue: QueueDestination) -> list[Exchange]:
        """Removes the queue's bindings and withdraws all plans that lead to it; returns like `remove`. `find_queue` must no longer
        find it."""
        ...

    def changed(self, exchange: Exchange, routing_key: str | None) -> None:
        """The plans that passed through the exchange (with this key; None: with any) become invalid."""

    def plan(self, exchange: Exchange, routing_key: str) -> Plan | None:
        """The way of every message with this key, or None if something on it looks at more than the key."""
        ...

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: Mapping[str, object]
    ) -> list[QueueDestination]:
        """Each queue once. DelayedMessages may be among them: see `delayed`. Give `headers.MessageHeaders(message)` to have headers and
        properties read only if they are needed."""
        ...
