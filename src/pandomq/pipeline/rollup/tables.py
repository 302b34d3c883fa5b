"""Tables of the summary: windows, queues, exchanges, brokers, dead letters, hot keys, sizes, consumers, the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pandomq.pipeline.rollup import measures
from pandomq.pipeline.rollup.sums import MICROS, WINDOWS
from pandomq.pipeline.rollup.views import (
    DEFAULT_EXCHANGE,
    MILLIS,
    NameView,
    VhostStory,
    all_stories,
    names_of,
    told,
    windows_of,
    written,
)
from pandomq.pipeline.summary import SummaryTable

WINDOWS_LISTED: Final = 20
"""In the table; the plots have all windows."""
STORIES_SHOWN: Final = 100

Column = Callable[[NameView], object]


def _part(measure: str, part: str, unit: float = MILLIS) -> Column:
    return lambda one: one.at(measure, part, unit)


def _count(*wanted: str) -> Column:
    return lambda one: one.messages(*wanted)


_FLOW: Final[dict[str, Column]] = {
    "published": _count(measures.PUBLISHED),
    "bytes": lambda one: one.bytes(measures.PUBLISHED),
    "delivered": _count(measures.DELIVERED),
    "deliver p50 ms": _part(measures.DELIVERED, "p50"),
    "deliver p99 ms": _part(measures.DELIVERED, "p99"),
    "acked": _count(measures.ACKED),
    "ack p50 ms": _part(measures.ACKED, "p50"),
    "ack p99 ms": _part(measures.ACKED, "p99"),
    "held p99 ms": _part(measures.HELD, "p99"),
    "redelivered": _count(measures.REDELIVERED),
    "expired": _count(measures.EXPIRED),
    "dead letters": _count(*measures.DEAD_LETTERS),
    "dropped": _count(*measures.DROPS),
}
_CONFIRMS: Final[dict[str, Column]] = {
    "confirmed": _count(measures.CONFIRMED),
    "confirm p50 ms": _part(measures.CONFIRMED, "p50"),
    "confirm p99 ms": _part(measures.CONFIRMED, "p99"),
    "unroutable": _count(measures.UNROUTABLE),
}
_SIZES: Final[dict[str, Column]] = {
    part: _part(measures.PUBLISHED, part, 1.0) for part in ("p50", "p90", "p99", "highest")
}


def all_tables(vhosts: Sequence[VhostStory], window: str) -> list[SummaryTable]:
    queue: dict[str, Column] = {"queue": lambda one: one.name}
    broker: dict[str, Column] = {"broker": lambda one: one.name}
    exchange: dict[str, Column] = {
        "exchange": lambda one: one.name or DEFAULT_EXCHANGE,
        "published": _count(measures.PUBLISHED),
        "bytes": lambda one: one.bytes(measures.PUBLISHED),
        "unroutable": _count(measures.UNROUTABLE),
    }
    return [
        _windows_table(vhosts, window),
        _table("Queues", vhosts, measures.QUEUE, queue | _FLOW),
        _table("Exchanges", vhosts, measures.EXCHANGE, exchange),
        _table("Brokers", vhosts, measures.BROKER, broker | _FLOW | _CONFIRMS),
        dead_letters(vhosts),
        hot_keys(vhosts),
        _table("Sizes", vhosts, measures.QUEUE, queue | _SIZES, lambda one: one.messages(measures.PUBLISHED) > 0),
        slowest(vhosts),
        _stories(vhosts),
    ]


def _table(
    title: str,
    vhosts: Sequence[VhostStory],
    subject: str,
    columns: dict[str, Column],
    wanted: Callable[[NameView], bool] = lambda _: True,
) -> SummaryTable:
    rows = [
        (vhost.vhost, *(column(one) for column in columns.values()))
        for vhost in vhosts
        for one in names_of(vhost, subject)
        if wanted(one)
    ]
    return SummaryTable(title, ("vhost", *columns), rows)


def _windows_table(vhosts: Sequence[VhostStory], window: str) -> SummaryTable:
    rows = [
        (
            vhost.vhost,
            written(start_us),
            start_us + WINDOWS[window] * MICROS <= vhost.watermark_us,
            *(one.rate(measure) for measure in (measures.PUBLISHED, measures.DELIVERED, measures.ACKED)),
            one.at(measures.DELIVERED, "p99", MILLIS),
            one.at(measures.ACKED, "p99", MILLIS),
            one.messages(*measures.DEAD_LETTERS),
        )
        for vhost in vhosts
        for start_us, one in windows_of(vhost)[-WINDOWS_LISTED:]
    ]
    rates = ("published a second", "delivered a second", "acked a second")
    headers = ("vhost", "from", "closed", *rates, "deliver p99 ms", "ack p99 ms", "dead letters")
    return SummaryTable(f"The last windows of {window}", headers, rows)


def dead_letters(vhosts: Sequence[VhostStory]) -> SummaryTable:
    rows = [
        (vhost.vhost, one.name, reason, count)
        for vhost in vhosts
        for one in names_of(vhost, measures.QUEUE)
        for measure, reason in measures.DEAD_LETTERS.items()
        if (count := one.messages(measure))
    ]
    return SummaryTable("Dead letters", ("vhost", "queue", "reason", "messages"), rows)


def hot_keys(vhosts: Sequence[VhostStory]) -> SummaryTable:
    rows = []
    for vhost in vhosts:
        whole = sum(one.messages(measures.PUBLISHED) for one in names_of(vhost, measures.BROKER)) or 1
        for one in names_of(vhost, measures.KEY):
            count = one.messages(measures.PUBLISHED)
            rows.append((vhost.vhost, one.within or DEFAULT_EXCHANGE, one.name, count, round(100 * count / whole, 2)))
    return SummaryTable("Hot keys", ("vhost", "exchange", "routing key", "published", "per cent"), rows)


def slowest(vhosts: Sequence[VhostStory]) -> SummaryTable:
    """The consumers that hold messages longest, first."""
    held = _part(measures.HELD, "p99")
    slow = [(vhost, one) for vhost, one in _consumers(vhosts) if held(one) is not None]
    slow.sort(key=lambda found: (-(found[1].at(measures.HELD, "p99") or 0.0), found[1].name, found[1].within))
    columns: dict[str, Column] = {
        "delivered": _count(measures.DELIVERED),
        "acked": _count(measures.ACKED),
        "held p50 ms": _part(measures.HELD, "p50"),
        "held p99 ms": held,
        "ack p99 ms": _part(measures.ACKED, "p99"),
    }
    rows = [(vhost, one.name, one.within, *(get(one) for get in columns.values())) for vhost, one in slow]
    return SummaryTable("Slowest consumers", ("vhost", "consumer", "queue", *columns), rows)


def _consumers(vhosts: Sequence[VhostStory]) -> Iterator[tuple[str, NameView]]:
    for vhost in vhosts:
        for one in names_of(vhost, measures.CONSUMER):
            yield vhost.vhost, one


def _stories(vhosts: Sequence[VhostStory]) -> SummaryTable:
    rows = [(written(one.time_us), one.broker, told(one.text)) for one in all_stories(vhosts)]
    return SummaryTable("What happened to the cluster", ("time", "broker", "what"), rows[-STORIES_SHOWN:])
