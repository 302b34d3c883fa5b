"""`pandomq top`: a broker at work, refreshed in place.

Rates are computed here, from one reading of the counters to the next, so that they are for the displayed interval.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from pandomq.cli.api import Api, Url
from pandomq.cli.failures import Failure, WrongUse
from pandomq.cli.objects.nouns import QUEUES
from pandomq.cli.output import cell, print_lines, rich_table

COUNTERS: Final = ("publish", "confirm", "deliver_get", "ack", "redeliver", "return_unroutable")
TITLES: Final = {"deliver_get": "deliver", "return_unroutable": "return"}
SORTS: Final = {
    "messages": "messages",
    "in": "message_stats.publish_details.rate",
    "out": "message_stats.deliver_get_details.rate",
}
QUEUE_COLUMNS: Final = ("vhost", "name", "ready", "unacked", "messages", "consumers", "in/s", "out/s")

Counters = dict[str, int]


class TopSample(msgspec.Struct, frozen=True):
    """One reading of a broker's state."""

    at_s: float
    overview: dict[str, Any]
    queues: list[dict[str, Any]]
    cluster: dict[str, Any] = {}

    @property
    def counters(self) -> Counters:
        stats = self.overview.get("message_stats") or {}
        return {name: int(stats.get(name) or 0) for name in COUNTERS}


def top(
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Seconds between two refreshes.")
    ] = 1.0,
    count: Annotated[int, typer.Option(min=0, help="End after this number of refreshes. 0 means no limit.")] = 0,
    rows: Annotated[int, typer.Option(min=1, max=500, help="Number of queues to show, one row per queue.")] = 20,
    sort: Annotated[
        str, typer.Option(help="Order of the queues: by messages, in (publish rate) or out (delivery rate).")
    ] = "messages",
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON per refresh.")] = False,
    url: Url = None,
) -> None:
    """Show rates and the busiest queues, refreshed in place; ^C ends it."""
    if sort not in SORTS:
        raise WrongUse(f"--sort '{cell(sort)}' is unknown: expected one of {', '.join(SORTS)}")
    api = Api.at(url)
    looks = _looks(lambda: look(api, rows, sort), interval, count, patient=sys.stdout.isatty() and not json)
    if json:
        _print_json_lines(looks)
    elif sys.stdout.isatty():
        _show_in_place(api, looks)
    else:
        _print_looks(looks)


def look(api: Api, rows: int, sort: str) -> TopSample:
    overview: dict[str, Any] = api.get("overview")
    answer: Any = api.get("queues", page="1", page_size=str(rows), sort=SORTS[sort], sort_reverse="true")
    # A broker without paging of its lists returns everything.
    queues: list[dict[str, Any]] = answer["items"] if isinstance(answer, dict) else answer
    column = {"messages": "messages", "in": "in/s", "out": "out/s"}[sort]
    queues.sort(key=lambda queue: _number(QUEUES.value(queue, column)), reverse=True)
    return TopSample(time.monotonic(), overview, queues[:rows], api.get("cluster"))


def rates(before: TopSample | None, now: TopSample) -> dict[str, float]:
    """Per second since the earlier reading; without one, the broker's own rates."""
    if before is None:
        stats = now.overview.get("message_stats") or {}
        return {name: _number((stats.get(f"{name}_details") or {}).get("rate")) for name in COUNTERS}
    elapsed_s = max(now.at_s - before.at_s, 0.001)
    # A restarted broker counts from zero.
    return {name: max(now.counters[name] - before.counters[name], 0) / elapsed_s for name in COUNTERS}


Reading = tuple[dict[str, float], TopSample] | Failure
"""Rates and the reading they are from, or the failure."""


def _looks(take: Callable[[], TopSample], interval_s: float, count: int, *, patient: bool) -> Iterator[Reading]:
    """Reads the state until the count is reached. If patient, it waits for a broker that is gone."""
    before: TopSample | None = None
    taken = 0
    while True:
        try:
            now = take()
            yield rates(before, now), now
            before = now
        except Failure as error:
            if not patient or taken == 0:
                raise
            yield error
        taken += 1
        if taken == count:
            return
        time.sleep(interval_s)


def _show_in_place(api: Api, looks: Iterator[Reading]) -> None:
    console = Console()
    with Live(console=console, auto_refresh=False, screen=True) as live:
        try:
            for reading in looks:
                picture = Text(str(reading)) if isinstance(reading, Failure) else _picture(api, *reading)
                live.update(picture, refresh=True)
        except KeyboardInterrupt:
            return


def _picture(api: Api, per_second: dict[str, float], now: TopSample) -> Group:
    totals = now.overview.get("object_totals") or {}
    waiting = now.overview.get("queue_totals") or {}
    head = (
        f"{cell(now.overview.get('cluster_name') or now.overview.get('node'))} at {api.address}   "
        + _place(now.cluster)
        + "   ".join(f"{cell(totals.get(kind))} {kind}" for kind in ("connections", "channels", "queues", "consumers"))
        + f"\nready {cell(waiting.get('messages_ready'))}   unacked {cell(waiting.get('messages_unacknowledged'))}   "
        + "   ".join(f"{TITLES.get(name, name)} {rate:,.0f}/s" for name, rate in per_second.items())
        + "\n"
    )
    return Group(Text(head), rich_table(QUEUE_COLUMNS, _queue_rows(now)))


def _place(cluster: dict[str, Any]) -> str:
    """Among several brokers: the name of this one, and the root."""
    members = cluster.get("members") or []
    if len(members) < 2:
        return ""
    in_sync = sum(bool(member.get("in_sync")) for member in members)
    root, role = cluster.get("root"), cell(cluster.get("role"))
    who = f"{in_sync} of {len(members)} in sync" if root == cluster.get("name") else f"root {cell(root) or 'unknown'}"
    return f"{role}   {who}   term {cell(cluster.get('term'))}   "


def _print_looks(looks: Iterator[Reading]) -> None:
    for reading in looks:
        assert not isinstance(reading, Failure), "nobody watches a pipe until a broker comes back"
        per_second, now = reading
        print_lines([TITLES.get(name, name) + "/s" for name in per_second], [list(per_second.values())])
        print_lines(QUEUE_COLUMNS, _queue_rows(now))
        sys.stdout.flush()


def _print_json_lines(looks: Iterator[Reading]) -> None:
    for reading in looks:
        assert not isinstance(reading, Failure), "nobody watches a pipe until a broker comes back"
        per_second, now = reading
        queues = [{column: QUEUES.value(queue, column) for column in QUEUE_COLUMNS} for queue in now.queues]
        totals = now.overview.get("object_totals")
        line = {"per_second": per_second, "totals": totals, "queues": queues}
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
        sys.stdout.flush()


def _queue_rows(now: TopSample) -> list[list[object]]:
    return [[QUEUES.value(queue, column) for column in QUEUE_COLUMNS] for queue in now.queues]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
