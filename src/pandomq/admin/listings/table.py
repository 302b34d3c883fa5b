"""All rows of one kind (queues, connections, …), built from views in slices and shared by all requests.

Building ten thousand rows costs the broker's loop some tens of milliseconds, so the rows are a `SharedBuild`. And each
object has a mark, which changes when anything about the object does: as long as it stays the same, the object's view,
row and JSON are reused. On a broker with many idle queues almost nothing is rebuilt.

Rates come from here, too: they are computed from two views of one object, at least a window apart.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Hashable, Iterator
from operator import attrgetter
from time import perf_counter
from typing import Any, Generic, TypeVar

import msgspec

from pandomq.admin import limits
from pandomq.admin.listings.rate import Rates
from pandomq.admin.listings.shared_build import CostMeter, SharedBuild

V = TypeVar("V")
R = TypeVar("R")
M = TypeVar("M")

Key = tuple[str | int, ...]
_ENCODER = msgspec.json.Encoder()


class CachedRow(Generic[V, R]):
    __slots__ = ("_encoded", "key", "mark", "rates", "row", "sampled", "sampled_s", "view")

    def __init__(self, key: Key, mark: object, view: V, row: R, rates: Rates, sampled: V, sampled_s: float) -> None:
        self.key = key
        self.mark = mark
        self.view = view
        self.row = row
        self.rates = rates
        self.sampled = sampled
        """The view from which the next rates are computed."""
        self.sampled_s = sampled_s
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = _ENCODER.encode(self.row)
        return self._encoded


class ViewTable(SharedBuild, Generic[V, R]):
    """`marks` iterates over all objects, `look` returns the view of one, or None if it is gone. Without `counters`
    there are no rates."""

    def __init__(
        self,
        marks: Callable[[], Iterator[tuple[Key, M]]],
        look: Callable[[Key, M], V | None],
        make_row: Callable[[V, Rates], R],
        counters: Callable[[V], tuple[int, ...]] | None = None,
    ) -> None:
        super().__init__()
        self._marks = marks
        self._look: Callable[[Key, Any], V | None] = look
        self._make_row = make_row
        self._counters = counters
        self._entries: dict[Key, CachedRow[V, R]] = {}
        self._ordered: list[CachedRow[V, R]] = []
        self._listings: dict[Hashable, Listing] = {}
        self._listings_bytes = 0
        self._forgetting: asyncio.TimerHandle | None = None

    async def entries(self) -> list[CachedRow[V, R]]:
        """The entries in the order of their keys, recent enough."""
        await self.refresh()
        return self._ordered

    def rates_of(self, key: Key) -> Rates:
        """From the last listing, which may be old; () if there was none."""
        entry = self._entries.get(key)
        return () if entry is None else entry.rates

    def listing(self, question: Hashable) -> Listing | None:
        """The answer to this query for exactly these entries, if there was one already."""
        return self._listings.get(question)

    def keep(self, question: Hashable, entries: list[CachedRow[V, R]], listing: Listing) -> None:
        size = len(listing.body)
        if (
            entries is self._ordered
            and len(self._listings) < limits.LISTINGS_MAX
            and self._listings_bytes + size <= limits.LISTINGS_BYTES_MAX
        ):
            self._listings[question] = listing
            self._listings_bytes += size

    # Building rows.

    def pause_s(self, made_s: float, cost_s: float) -> float:
        pause_s = made_s + cost_s * limits.LISTING_COST_SHARE_AFTER_CHANGE - perf_counter()
        return min(pause_s, limits.LISTING_FRESH_S_MAX)

    async def build(self, meter: CostMeter) -> None:
        entries: dict[Key, CachedRow[V, R]] = {}
        now_s = perf_counter()
        for count, (key, mark) in enumerate(self._marks(), 1):
            entry = self._entry(key, mark, now_s)
            if entry is not None:
                entries[key] = entry
            if count % limits.SLICE_ROWS == 0:
                await meter.pause()
                now_s = perf_counter()
        # The old order followed by new rows is almost sorted, and quick to sort.
        ordered = [entries[key] for key in self._entries if key in entries]
        ordered += [entry for key, entry in entries.items() if key not in self._entries]
        ordered.sort(key=attrgetter("key"))
        self._entries = {entry.key: entry for entry in ordered}
        self._ordered = ordered
        self._drop_listings()
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(limits.LISTING_KEPT_S, self._forget)

    def _entry(self, key: Key, mark: object, now_s: float) -> CachedRow[V, R] | None:
        old = self._entries.get(key)
        if old is not None and mark == old.mark:
            if not any(old.rates) and old.view is old.sampled:
                old.sampled_s = now_s
                return old
            view = old.view
        else:
            seen = self._look(key, mark)
            if seen is None:
                return None
            view = seen
        if old is None:
            return CachedRow(key, mark, view, self._make_row(view, ()), (), view, now_s)
        if self._counters is None or now_s - old.sampled_s < limits.RATE_WINDOW_S:
            if view is old.view:
                return old
            return CachedRow(key, mark, view, self._make_row(view, old.rates), old.rates, old.sampled, old.sampled_s)
        rates = _rates(self._counters(view), self._counters(old.sampled), now_s - old.sampled_s)
        return CachedRow(key, mark, view, self._make_row(view, rates), rates, view, now_s)

    def _forget(self) -> None:
        self._forgetting = None
        self._entries = {}
        self._ordered = []
        self._drop_listings()
        self.changed()

    def _drop_listings(self) -> None:
        self._listings.clear()
        self._listings_bytes = 0


class Listing:
    """An answer as bytes, built once for all equal requests; compressed when the first client accepts it."""

    __slots__ = ("_compressing", "body")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._compressing: asyncio.Task[bytes] | None = None

    async def compressed(self) -> bytes:
        if self._compressing is None:
            # In a thread: compression releases the interpreter, so the broker continues beside it.
            self._compressing = asyncio.create_task(asyncio.to_thread(_compress, self.body))
        return await asyncio.shield(self._compressing)


def _rates(counters: tuple[int, ...], before: tuple[int, ...], elapsed_s: float) -> Rates:
    changes = (new - old for new, old in zip(counters, before, strict=True))
    # A counter that decreased has started anew.
    return tuple(max(0.0, round(change / elapsed_s, 1)) for change in changes)


def by_views(
    views: Callable[[], Iterator[V]], key: Callable[[V], Key]
) -> tuple[Callable[[], Iterator[tuple[Key, V]]], Callable[[Key, V], V]]:
    """Marks and looks for objects whose views are their own marks."""
    return lambda: ((key(view), view) for view in views()), lambda _key, view: view


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=1, mtime=0)
