"""`pandomq ctl`: rabbitmqctl's words, over HTTP.

Options stand before or behind the word, as there. A pipe gets what `rabbitmqctl --quiet` prints: a line of headers, and
tabs between the cells; `--silent` leaves the headers out.
"""

from __future__ import annotations

import difflib
import sys
from typing import Annotated, Final

import typer

from pandomq.cli.api import Api, Url
from pandomq.cli.ctl_words import FORMATTERS, WORDS, Order
from pandomq.cli.failures import WrongUse
from pandomq.cli.output import cell, print_lines

ELSEWHERE: Final = {
    "environment": "pandomq config",
    "stop": "SIGTERM to the broker's process, whose number is in its data directory, in the file pid",
    "shutdown": "SIGTERM to the broker's process, whose number is in its data directory, in the file pid",
    "start_app": "pandomq start",
    "help": "pandomq ctl",
}
"""Words that mean something here that is not asked over HTTP."""


def ctl(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD [ARGUMENT]…", show_default=False)] = None,
    vhost: Annotated[str, typer.Option("--vhost", "-p", help="The vhost.")] = "/",
    formatter: Annotated[str, typer.Option(help=f"{', '.join(FORMATTERS)}.")] = "table",
    json: Annotated[bool, typer.Option("--json", help="The same as --formatter json.")] = False,
    silent: Annotated[bool, typer.Option("--silent", "-s", help="No headers.")] = False,
    no_table_headers: Annotated[bool, typer.Option("--no-table-headers", help="No headers.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="It always is: no banners.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", "-t", min=0, help="For await_startup, in seconds.")] = 300.0,
    priority: Annotated[int, typer.Option(help="For set_policy and set_operator_policy.")] = 0,
    apply_to: Annotated[str | None, typer.Option(help="For set_policy and set_operator_policy.")] = None,
    if_empty: Annotated[bool, typer.Option("--if-empty", "-e", help="For delete_queue.")] = False,
    if_unused: Annotated[bool, typer.Option("--if-unused", "-u", help="For delete_queue.")] = False,
    url: Url = None,
) -> None:
    """rabbitmqctl's words: list_queues name messages, add_user, set_permissions, …; without one it lists them all."""
    if not words:
        print_lines([], [[f"{word} {known.usage}".strip()] for word, known in WORDS.items()], with_headers=False)
        return
    word, *arguments = words
    known = WORDS.get(word)
    if known is None:
        raise WrongUse(_unknown(word))
    if not known.takes(len(arguments)):
        raise WrongUse(f"expected: pandomq ctl {word} {known.usage}".rstrip())
    if formatter not in FORMATTERS:
        raise WrongUse(f"'{cell(formatter)}' is not a formatter: expected {', '.join(FORMATTERS)}")
    known.run(
        Order(
            api=Api.at(url),
            arguments=arguments,
            vhost=vhost,
            formatter="json" if json else formatter,
            with_headers=not (silent or no_table_headers),
            timeout_s=timeout,
            priority=priority,
            apply_to=apply_to,
            if_empty=if_empty,
            if_unused=if_unused,
        )
    )
    sys.stdout.flush()


def _unknown(word: str) -> str:
    if word in ELSEWHERE:
        return f"{word} is no word for a broker's API: {ELSEWHERE[word]}"
    nearest = difflib.get_close_matches(word, WORDS, n=1)
    meant = f": did you mean {nearest[0]}?" if nearest else "."
    return f"{cell(word)} is not a word of rabbitmqctl that is known here{meant} `pandomq ctl` lists them"
