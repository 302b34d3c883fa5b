"""The tables behind the listings, and the answers to listings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from pandomq.admin.listings.client_rows import (
    ChannelRow,
    ConnectionRow,
    ConsumerRow,
    channel_key,
    channel_row,
    connection_counters,
    connection_key,
    connection_row,
    consumer_key,
    consumer_row,
)
from pandomq.admin.listings.exchange_rows import (
    BindingRow,
    ExchangeRow,
    binding_key,
    binding_row,
    exchange_key,
    exchange_row,
)
from pandomq.admin.listings.query import ListQuery, render
from pandomq.admin.listings.queue_rows import QueueRow, queue_counters, queue_row
from pandomq.admin.listings.table import CachedRow, ViewTable, by_views
from pandomq.admin.listings.totals import TotalsKeeper

if TYPE_CHECKING:
    from pandomq.admin.listings.table import Listing
    from pandomq.broker.views import BindingView, ExchangeView, QueueView
    from pandomq.node.views.records import LinkChannelView, LinkConsumerView, LinkView
    from pandomq.node.views.views import Views

R = TypeVar("R")


class Tables:
    def __init__(self, views: Views, node: str) -> None:
        self.queues: ViewTable[QueueView, QueueRow] = ViewTable(
            views.queue_marks,
            lambda key, _mark: views.queue(str(key[0]), str(key[1])),
            lambda view, rates: queue_row(view, rates, node),
            queue_counters,
        )
        self.exchanges: ViewTable[ExchangeView, ExchangeRow] = ViewTable(
            *by_views(views.exchanges, exchange_key), lambda view, _rates: exchange_row(view)
        )
        self.bindings: ViewTable[BindingView, BindingRow] = ViewTable(
            *by_views(views.bindings, binding_key), lambda view, _rates: binding_row(view)
        )
        self.connections: ViewTable[LinkView, ConnectionRow] = ViewTable(
            *by_views(views.connections, connection_key),
            lambda view, rates: connection_row(view, rates, node),
            connection_counters,
        )
        self.channels: ViewTable[LinkChannelView, ChannelRow] = ViewTable(
            *by_views(views.channels, channel_key), lambda view, rates: channel_row(view, rates, node)
        )
        self.consumers: ViewTable[LinkConsumerView, ConsumerRow] = ViewTable(
            *by_views(views.consumers, consumer_key), lambda view, _rates: consumer_row(view, node)
        )

        self.totals = TotalsKeeper(views)

    def changed(self) -> None:
        """An object was changed over HTTP."""
        for table in (self.queues, self.exchanges, self.bindings, self.connections, self.channels, self.consumers):
            table.changed()
        self.totals.changed()


class Scope(NamedTuple):
    """The rows that a user may see."""

    key: Hashable
    """Equal for users who see the same rows."""
    keep: Callable[[Any], bool] | None
    """None if all are visible."""


EVERYTHING: Final = Scope(None, None)


async def list_rows(table: ViewTable[Any, R], scope: Scope, query: ListQuery) -> Listing:
    """Raises Refusal (400) for a page that does not exist."""
    entries = await table.entries()
    question = (scope.key, query)
    listing = table.listing(question)
    if listing is None:
        shown = entries if scope.keep is None else [entry for entry in entries if scope.keep(entry.row)]
        listing = await render(shown, query)
        table.keep(question, entries, listing)
    return listing


async def render_rows(rows: Sequence[R], query: ListQuery) -> Listing:
    """Renders a few rows that are in no table."""
    return await render(
        [CachedRow((position,), None, row, row, (), row, 0.0) for position, row in enumerate(rows)], query
    )
