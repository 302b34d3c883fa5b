"""Figures as text: the tables of the pages and their cells. A missing figure is a dash."""

from collections.abc import Iterable, Sequence

from tools.compare.peers.ledger import Ledger

Rows = Iterable[Sequence[str]]


def table(columns: Sequence[str], rows: Rows) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def errors_of(ledger: Ledger, subject: str) -> list[str]:
    return [
        f"{figure.broker}, {figure.subject}: {error}"
        for figure in ledger.figures
        if figure.subject == subject
        for error in figure.errors
    ]


def rate(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def small_or_large(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}×"


def milliseconds(value_us: float | None) -> str:
    return "–" if value_us is None else f"{value_us / 1000:.2f}"


def seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
