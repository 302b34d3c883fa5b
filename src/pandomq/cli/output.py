"""The output of commands: a table at a terminal, lines with tabs in a pipe, JSON on request.

Data from a broker is escaped first: a name may contain a newline, a tab or a terminal's control sequence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import typer

from pandomq.runtime.logs import printable

if TYPE_CHECKING:
    from rich.table import Table

# Rich is imported by the functions that use it: `pandomq start` needs only `say`.

Row = Sequence[object]

RICH_ROWS_MAX: Final = 500
"""Longer lists are printed plainly: laying out 10,000 rows takes Rich ten seconds."""


def print_json(document: bytes) -> None:
    """The document unchanged, indented."""
    sys.stdout.write(msgspec.json.format(document, indent=2).decode() + "\n")


def print_table(headers: Sequence[str], rows: Sequence[Row], *, with_headers: bool = True) -> None:
    if not sys.stdout.isatty():
        print_lines(headers, rows, with_headers=with_headers)
    elif len(rows) > RICH_ROWS_MAX:
        sys.stdout.write(aligned(headers, rows))
    else:
        from rich.console import Console

        Console().print(rich_table(headers, rows))


def print_lines(headers: Sequence[str], rows: Sequence[Row], *, with_headers: bool = True) -> None:
    """A row a line and tabs between the cells: for other programs."""
    lines = ["\t".join(headers)] if with_headers else []
    lines += ["\t".join(cell(value) for value in row) for row in rows]
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")


def rich_table(headers: Sequence[str], rows: Sequence[Row]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    numeric = [all(_is_number(row[index]) for row in rows) for index in range(len(headers))]
    for header, is_number in zip(headers, numeric, strict=True):
        table.add_column(header, justify="right" if is_number and rows else "left", overflow="fold")
    for row in rows:
        # Text, because a name with brackets is not markup.
        table.add_row(*(Text(cell(value)) for value in row))
    return table


def aligned(headers: Sequence[str], rows: Sequence[Row]) -> str:
    from rich.cells import cell_len

    lines = [list(headers), *([cell(value) for value in row] for row in rows)]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(headers))]
    return "".join(
        "  ".join(text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )


def cell(value: object) -> str:
    """A value on one line: texts unchanged, lists of names with commas, other structures as JSON."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return printable(value)
        case float():
            return f"{value:.1f}"
        case int():
            return str(value)
        case list() if all(isinstance(part, str) for part in value):
            return printable(", ".join(value))
        case _:
            return printable(msgspec.json.encode(value).decode())


def say(text: str) -> None:
    """A message for the person, separate from the output for programs."""
    typer.echo(printable(text), err=True)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
