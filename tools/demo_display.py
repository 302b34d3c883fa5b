"""The demo's face: a live picture on a terminal, lines of text elsewhere."""

from __future__ import annotations

from collections import deque

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from tools.demo_account import COUNTED, Account, Counters
from tools.demo_grove import MemberRow, Sight

EVENTS_SHOWN = 8
ROLE_STYLES = {"root": "bold green", "backup": "cyan", "secondary": "blue", "learner": "yellow", "dead": "bold red"}


class Display:
    def __init__(self, console: Console, counters: Counters, seconds: float) -> None:
        self._console = console
        self._counters = counters
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

    def tell(self, elapsed_s: float, what: str) -> None:
        """Something happened."""
        words = f"{elapsed_s:5.1f} s  {what}"
        self._events.append(words)
        if self._live is None:
            self._print(words)

    def show(self, elapsed_s: float, phase: str, sight: Sight) -> None:
        rates = self._counters.rates()
        if self._live is not None:
            self._bar.update(self._task, completed=min(elapsed_s, self._seconds), description=f"{phase:<10}")
            events = Text("\n".join(self._events))
            self._live.update(Group(self._bar, members_table(sight), "", self._counts(rates), "", events))
        elif elapsed_s >= self._next_line_s:
            self._next_line_s = int(elapsed_s) + 1.0
            self._print(self._line(elapsed_s, phase, rates, sight))

    def _print(self, words: str) -> None:
        self._console.print(words, highlight=False, markup=False, soft_wrap=True)

    def _counts(self, rates: dict[str, float]) -> Table:
        table = plain_table("", "per second", "total")
        for name in COUNTED:
            table.add_row(name, f"{rates[name]:,.0f}", f"{self._counters.totals[name]:,}")
        table.add_row("latency p50 / p99", "", self._latency())
        table.add_row("longest pause between confirms", "", f"{self._counters.longest_pause_s:.2f} s")
        return table

    def _line(self, elapsed_s: float, phase: str, rates: dict[str, float], sight: Sight) -> str:
        roles = " ".join(f"{row.name}={row.role}" for row in sight.rows)
        counts = "  ".join(
            f"{name} {self._counters.totals[name]:,}" for name in ("published", "confirmed", "acked", "heard")
        )
        return f"{elapsed_s:5.1f} s  {phase:<10}  {roles}  {rates['confirmed']:,.0f}/s  {counts}  {self._latency()}"

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
    table = plain_table("", "messages", title="Account")
    for name, words in account.lines():
        table.add_row(name, words)
    console.print(table)
    console.print("The account balances." if account.balances() else "THE ACCOUNT DOES NOT BALANCE.", highlight=False)
