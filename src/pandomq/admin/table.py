"""All rows of one kind (queues, connections, …), made from views in slices and shared by everybody who asks.

Making ten thousand rows costs the broker's loop some tens of milliseconds. So rows are made anew only when they are
older than their cost allows, one part in so many of the time; who asks meanwhile, or while it is being done, gets the
same. A row whose view has not changed keeps its JSON: on a broker with many idle queues almost nothing is encoded.

Rates come from here, too: two views of one object, at least a window apart, tell how fast its counters move.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Hashable, Iterator
from operator import attrgetter
from time import perf_counter
from typing import Generic, TypeVar

import msgspec

from pandomq.admin import limits
from pandomq.admin.cost import CostMeter
from pandomq.admin.rate import Rates

V = TypeVar("V")
R = TypeVar("R")

Key = tuple[str | int, ...]
_ENCODER = msgspec.json.Encoder()


class Entry(Generic[V, R]):
    __slots__ = ("_encoded", "key", "rates", "row", "sampled", "sampled_s", "view")

    def __init__(self, key: Key, view: V, row: R, rates: Rates, sampled: V, sampled_s: float) -> None:
        self.key = key
        self.view = view
        self.row = row
        self.rates = rates
        self.sampled = sampled
        """The view from which the next rates are counted."""
        self.sampled_s = sampled_s
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = _ENCODER.encode(self.row)
        return self._encoded


class Table(Generic[V, R]):
    """Of frozen views that can be compared. Without `counters` there are no rates."""

    def __init__(
        self,
        views: Callable[[], Iterator[V]],
        key: Callable[[V], Key],
        make_row: Callable[[V, Rates], R],
        counters: Callable[[V], tuple[int, ...]] | None = None,
    ) -> None:
        self._views = views
        self._key = key
        self._make_row = make_row
        self._counters = counters
        self._entries: dict[Key, Entry[V, R]] = {}
        self._ordered: list[Entry[V, R]] = []
        self._listings: dict[Hashable, Listing] = {}
        self._made_s = 0.0
        self._cost_s = 0.0
        self._changed = True
        self._making: asyncio.Task[None] | None = None
        self._forgetting: asyncio.TimerHandle | None = None

    async def entries(self) -> list[Entry[V, R]]:
        """In the order of their keys, fresh enough."""
        if self._making is None and not self._is_fresh(perf_counter()):
            self._making = asyncio.create_task(self._make())
        if self._making is not None:
            # Whoever came first may hang up; the others still wait for it.
            await asyncio.shield(self._making)
        return self._ordered

    def changed(self) -> None:
        """Somebody changed something here: the next listing shows it."""
        self._changed = True

    def rates_of(self, key: Key) -> Rates:
        """As of the last listing, which may be long ago; () if there was none."""
        entry = self._entries.get(key)
        return () if entry is None else entry.rates

    def listing(self, question: Hashable) -> Listing | None:
        """The answer to this question about these very entries, if it was put already."""
        return self._listings.get(question)

    def keep(self, question: Hashable, entries: list[Entry[V, R]], listing: Listing) -> None:
        if entries is self._ordered and len(self._listings) < limits.LISTINGS_MAX:
            self._listings[question] = listing

    # Making rows.

    def _is_fresh(self, now_s: float) -> bool:
        if self._changed:
            return False
        return now_s - self._made_s < min(self._cost_s * limits.LISTING_COST_SHARE, limits.LISTING_FRESH_S_MAX)

    async def _make(self) -> None:
        try:
            pause_s = self._made_s + self._cost_s * limits.LISTING_COST_SHARE_AFTER_CHANGE - perf_counter()
            if pause_s > 0:
                await asyncio.sleep(min(pause_s, limits.LISTING_FRESH_S_MAX))
            self._changed = False
            await self._read_views()
        finally:
            self._making = None
        self._listings.clear()
        loop = asyncio.get_running_loop()
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = loop.call_later(limits.LISTING_KEPT_S, self._forget)

    async def _read_views(self) -> None:
        entries: dict[Key, Entry[V, R]] = {}
        now_s = perf_counter()
        meter = CostMeter()
        for count, view in enumerate(self._views(), 1):
            key = self._key(view)
            entries[key] = self._entry(key, view, now_s)
            if count % limits.SLICE_ROWS == 0:
                await meter.pause()
                now_s = perf_counter()
        # The old order with what is new behind it is almost sorted, and quick to sort.
        ordered = [entries[key] for key in self._entries if key in entries]
        ordered += [entry for key, entry in entries.items() if key not in self._entries]
        ordered.sort(key=attrgetter("key"))
        self._entries = {entry.key: entry for entry in ordered}
        self._ordered = ordered
        self._made_s = perf_counter()
        self._cost_s = meter.stop()

    def _entry(self, key: Key, view: V, now_s: float) -> Entry[V, R]:
        old = self._entries.get(key)
        if old is None:
            return Entry(key, view, self._make_row(view, ()), (), view, now_s)
        same = view == old.view
        if same and not any(old.rates) and old.view is old.sampled:
            old.sampled_s = now_s
            return old
        if self._counters is None or now_s - old.sampled_s < limits.RATE_WINDOW_S:
            if same:
                return old
            return Entry(key, view, self._make_row(view, old.rates), old.rates, old.sampled, old.sampled_s)
        elapsed_s = now_s - old.sampled_s
        rates = tuple(
            max(0.0, round((new - before) / elapsed_s, 1))
            for new, before in zip(self._counters(view), self._counters(old.sampled), strict=True)
        )
        return Entry(key, view, self._make_row(view, rates), rates, view, now_s)

    def _forget(self) -> None:
        self._forgetting = None
        self._entries = {}
        self._ordered = []
        self._listings.clear()
        self._changed = True


class Listing:
    """An answer as bytes, made once for all who ask the same; compressed when the first one wants it so."""

    __slots__ = ("_compressing", "body")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._compressing: asyncio.Task[bytes] | None = None

    async def compressed(self) -> bytes:
        if self._compressing is None:
            # In a thread: compressing lets go of the interpreter, so the broker goes on beside it.
            self._compressing = asyncio.create_task(asyncio.to_thread(_compress, self.body))
        return await asyncio.shield(self._compressing)


def _compress(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=1, mtime=0)
