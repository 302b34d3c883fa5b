"""Rows that are shared while they are fresh, and rates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgspec
import pytest

from pandomq.admin import limits
from pandomq.admin.listings import shared_build, table
from pandomq.admin.listings.rate import Rates
from pandomq.admin.listings.shared_build import CostMeter
from pandomq.admin.listings.table import Listing, ViewTable, by_views


class View(msgspec.Struct, frozen=True):
    name: str
    count: int


class Row(msgspec.Struct, frozen=True):
    name: str
    count: int
    rate: float


class World:
    """A table over a dictionary, and a clock that is a number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost_s: float = 0.0) -> None:
        self.now_s = 1000.0
        self.counts: dict[str, int] = {}
        self.read = 0
        self.made = 0
        self.table: ViewTable[View, Row] = ViewTable(
            *by_views(self._views, lambda view: (view.name,)), self._row, lambda view: (view.count,)
        )
        for module in (shared_build, table):
            monkeypatch.setattr(module, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(CostMeter, "stop", lambda _meter: cost_s)

    def _views(self) -> Iterator[View]:
        self.read += 1
        for name, count in list(self.counts.items()):
            yield View(name, count)

    def _row(self, view: View, rates: Rates) -> Row:
        self.made += 1
        return Row(view.name, view.count, rates[0] if rates else 0.0)

    async def rows(self) -> list[Row]:
        return [entry.row for entry in await self.table.entries()]


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_rows_are_in_order_and_follow_the_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)

    async def test() -> None:
        world.counts = {"b": 1, "a": 2}
        assert [row.name for row in await world.rows()] == ["a", "b"]
        world.counts = {"b": 1, "c": 0, "aa": 0}
        assert [row.name for row in await world.rows()] == ["aa", "b", "c"]

    run(test)


def test_rows_are_made_anew_when_their_cost_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, cost_s=0.02)

    async def test() -> None:
        await world.rows()
        world.now_s += 0.02 * limits.LISTING_COST_SHARE - 0.01
        await world.rows()
        assert world.read == 1
        world.now_s += 0.02
        await world.rows()
        assert world.read == 2

    run(test)


def test_however_much_they_cost_they_do_not_grow_old(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, cost_s=1.0)

    async def test() -> None:
        await world.rows()
        world.now_s += limits.LISTING_FRESH_S_MAX + 40
        await world.rows()
        assert world.read == 2

    run(test)


def test_a_change_is_visible_in_the_next_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, cost_s=0.001)

    async def test() -> None:
        await world.rows()
        world.counts["new"] = 1
        world.table.changed()
        assert [row.name for row in await world.rows()] == ["new"]

    run(test)


def test_a_change_while_rows_are_made_is_visible_in_the_next_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, cost_s=0.001)
    world.counts = {f"q{number}": number for number in range(5 * limits.SLICE_ROWS)}

    async def test() -> None:
        making = asyncio.create_task(world.rows())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # The names have been read already.
        world.counts["a new one"] = 1
        world.table.changed()
        assert "a new one" in [row.name for row in await world.rows()]
        await making
        assert world.read == 2

    run(test)


def test_only_objects_with_another_mark_are_read() -> None:
    looked: list[object] = []
    marks = {("a",): 1, ("b",): 1, ("gone",): 1}

    def look(key: tuple[str | int, ...], mark: int) -> View | None:
        looked.append(key)
        return None if key == ("gone",) else View(str(key[0]), mark)

    watched: ViewTable[View, Row] = ViewTable(
        lambda: iter(list(marks.items())), look, lambda view, _rates: Row(view.name, view.count, 0.0)
    )

    async def test() -> None:
        assert [entry.row.name for entry in await watched.entries()] == ["a", "b"]
        looked.clear()
        marks["b",] = 2
        del marks["gone",]
        watched.changed()
        assert [entry.row.count for entry in await watched.entries()] == [1, 2]
        assert looked == [("b",)]

    run(test)


def test_many_at_once_cost_as_much_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, cost_s=1.0)
    world.counts = {str(number): number for number in range(5 * limits.SLICE_ROWS)}

    async def test() -> None:
        lists = await asyncio.gather(*(world.table.entries() for _ in range(10)))
        assert world.read == 1
        assert all(entries is lists[0] for entries in lists)

    run(test)


def test_a_request_that_is_cancelled_does_not_cancel_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.counts = {str(number): number for number in range(3 * limits.SLICE_ROWS)}

    async def test() -> None:
        first = asyncio.create_task(world.rows())
        second = asyncio.create_task(world.rows())
        await asyncio.sleep(0)
        first.cancel()
        assert len(await second) == len(world.counts)
        assert world.read == 1

    run(test)


def test_the_loop_turns_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.counts = {str(number): number for number in range(10 * limits.SLICE_ROWS)}
    turns = 0

    async def test() -> None:
        nonlocal turns
        making = asyncio.create_task(world.rows())
        while not making.done():
            turns += 1
            await asyncio.sleep(0)

    run(test)
    assert turns >= 10


def test_a_row_that_did_not_change_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)

    async def test() -> None:
        world.counts = {"idle": 0, "busy": 0}
        before = {entry.key: entry.encoded for entry in await world.table.entries()}
        for _ in range(3):
            world.now_s += 1
            world.counts["busy"] += 10
            entries = {entry.key: entry for entry in await world.table.entries()}
            assert entries["idle",].encoded is before["idle",]
        assert entries["busy",].row == Row("busy", 30, 10.0)
        # Once each at first, then the busy one alone.
        assert world.made == 2 + 3

    run(test)


def test_rates_are_over_a_window_and_end_with_the_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)

    async def rate() -> float:
        [row] = await world.rows()
        return row.rate

    async def test() -> None:
        world.counts = {"q": 100}
        assert await rate() == 0.0
        world.counts["q"] = 150
        world.now_s += limits.RATE_WINDOW_S / 2
        assert await rate() == 0.0, "too early to tell"
        world.now_s += limits.RATE_WINDOW_S / 2
        assert await rate() == 50.0
        world.now_s += 0.1
        world.counts["q"] = 151
        assert await rate() == 50.0, "until the next window is over"
        world.now_s += 1.9
        assert await rate() == 0.5
        world.now_s += 1
        assert await rate() == 0.0
        world.counts["q"] = 0
        world.now_s += 1
        assert await rate() == 0.0, "a counter that starts anew has no negative rate"

    run(test)


def test_answers_are_kept_as_long_as_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, cost_s=0.001)

    async def test() -> None:
        entries = await world.table.entries()
        world.table.keep("question", entries, Listing(b"[]"))
        kept = world.table.listing("question")
        assert kept is not None
        assert kept.body == b"[]"
        world.now_s += 1
        fresh = await world.table.entries()
        assert world.table.listing("question") is None
        world.table.keep("question", entries, Listing(b"old"))
        assert world.table.listing("question") is None, "an answer from older rows is not kept"
        for number in range(limits.LISTINGS_MAX + 5):
            world.table.keep(number, fresh, Listing(b""))
        assert world.table.listing(limits.LISTINGS_MAX - 1) is not None
        assert world.table.listing(limits.LISTINGS_MAX) is None
        world.now_s += 1
        fresh = await world.table.entries()
        half = Listing(b"x" * (limits.LISTINGS_BYTES_MAX // 2))
        for number in range(3):
            world.table.keep(number, fresh, half)
        assert [world.table.listing(number) is None for number in range(3)] == [False, False, True]

    run(test)


def test_rows_that_are_not_requested_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LISTING_KEPT_S", 0.05)
    world = World(monkeypatch, cost_s=0.001)

    async def test() -> None:
        world.counts = {"q": 1}
        await world.rows()
        assert world.table._entries
        await asyncio.sleep(0.1)
        assert not world.table._entries
        assert len(await world.rows()) == 1

    run(test)


def test_a_listing_is_compressed_once() -> None:
    async def test() -> None:
        listing = Listing(b"x" * 100_000)
        first, second = await asyncio.gather(listing.compressed(), listing.compressed())
        assert first is second
        assert len(first) < 1000

    asyncio.run(test())
