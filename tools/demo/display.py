"""The demo's display: a live picture on a terminal, lines of text elsewhere, and a short summary at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from pandomq.pipeline.summary import Summary
from tools.demo.account import Account
from tools.demo.counters import COUNTED, Counters
from tools.demo.grove import MemberRow, Sight
from tools.demo.story import Story

EVENTS_SHOWN = 12
ROLE_STYLES = {"root": "bold green", "backup": "cyan", "secondary": "blue", "learner": "yellow", "dead": "bold red"}


class Display:
    def __init__(self, console: Console, counters: Counters, story: Story, seconds: float) -> None:
        self._console = console
        self._counters = counters
        self._story = story
        self._seconds = seconds
        self._events: deque[str] = deque(maxlen=EVENTS_SHOWN)
        self._bar = ProgressBar(TextColumn("{task.description}"), BarColumn(bar_width=44), TimeElapsedColumn())
        self._task = self._bar.add_task("publishing", total=seconds)
        self._live = Live(console=console, refresh_per_second=8) if console.is_terminal else None
        self._next_line_s = 1.0

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, what: str, at_s: float | None = None) -> None:
        """An event that becomes part of the story."""
        self._story.tell(what, at_s)
        self.say(what)

    def say(self, what: str) -> None:
        """Shows a temporary message."""
        words = f"{self._story.now_s:5.1f} s  {what}"
        self._events.append(words)
        if self._live is None:
            self._print(words)

    def show(self, published_s: float, phase: str, sight: Sight, archived_rows: int | None) -> None:
        rates = self._counters.rates()
        if self._live is not None:
            self._bar.update(self._task, completed=min(published_s, self._seconds), description=f"{phase:<10}")
            events = Text("\n".join(self._events))
            counts = self._counts(rates, archived_rows)
            self._live.update(Group(self._bar, members_table(sight), "", counts, "", events))
        elif self._story.now_s >= self._next_line_s:
            self._next_line_s = int(self._story.now_s) + 1.0
            self._print(self._line(phase, rates, sight, archived_rows))

    def _print(self, words: str) -> None:
        self._console.print(words, highlight=False, markup=False, soft_wrap=True)

    def _counts(self, rates: dict[str, float], archived_rows: int | None) -> Table:
        table = plain_table("", "per second", "total")
        for name in COUNTED:
            table.add_row(name, f"{rates[name]:,.0f}", f"{self._counters.totals[name]:,}")
        if archived_rows is not None:
            table.add_row("rows archived by Spark", "", f"{archived_rows:,}")
        table.add_row("latency, median / p99", "", self._latency())
        table.add_row("longest pause between confirms", "", f"{self._counters.longest_pause_s:.2f} s")
        return table

    def _line(self, phase: str, rates: dict[str, float], sight: Sight, archived_rows: int | None) -> str:
        roles = " ".join(f"{row.name}={row.role}" for row in sight.rows)
        counts = "  ".join(
            f"{name} {self._counters.totals[name]:,}" for name in ("published", "confirmed", "acked", "heard")
        )
        archived = "" if archived_rows is None else f"  archived {archived_rows:,}"
        return (
            f"{self._story.now_s:5.1f} s  {phase:<10}  {roles}  {rates['confirmed']:,.0f}/s  {counts}{archived}"
            f"  {self._latency()}"
        )

    def _latency(self) -> str:
        return f"{self._counters.latency_ms(0.5):.1f} / {self._counters.latency_ms(0.99):.1f} ms"


def members_table(sight: Sight) -> Table:
    table = plain_table("broker", "address", "pid", "role", "in sync", "log index", "lag")
    for row in sight.rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: MemberRow) -> list[str | Text]:
    role = Text(row.role, style=ROLE_STYLES.get(row.role, ""))
    return [row.name, row.address, row.pid, role, row.in_sync, row.log_index, row.lag]


def plain_table(*headings: str, title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def print_account(account: Account, console: Console) -> None:
    table = plain_table("", "messages", title="Message accounting")
    for name, count in account.lines():
        table.add_row(name, f"{count:,}")
    table.add_row("longest pause between confirms", f"{account.counters.longest_pause_s:.2f} s")
    console.print(table)
    if account.footnote:
        console.print(account.footnote, highlight=False)
    console.print(
        "The message accounting balances." if account.balances() else "THE MESSAGE ACCOUNTING DOES NOT BALANCE.",
        highlight=False,
    )


def print_jobs(summaries: Sequence[Summary], taken_s: dict[str, float], console: Console) -> None:
    table = plain_table("", "seconds", title="\nJobs on Spark")
    table.add_column("")
    for summary in summaries:
        style = "bold red" if not summary.good else "" if summary.complete else "yellow"
        table.add_row(summary.job, f"{taken_s[summary.job]:.0f}", Text(summary.verdict, style=style))
    console.print(table)
