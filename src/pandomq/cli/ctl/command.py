"""`pandomq ctl`: rabbitmqctl's commands, over HTTP.

Options come before or after the command, as there. A pipe gets the output of `rabbitmqctl --quiet`: a line of headers,
and tabs between the cells; `--silent` leaves the headers out.
"""

from __future__ import annotations

import difflib
import sys
from typing import Annotated, Final

import typer

from pandomq.cli.api import Api, Url
from pandomq.cli.ctl.words import FORMATTERS, WORDS, Order
from pandomq.cli.failures import WrongUse
from pandomq.cli.output import cell, print_lines

ELSEWHERE: Final = {
    "environment": "pandomq config",
    "stop": "send SIGTERM to the broker's process; its process id is in the file pid in its data directory",
    "shutdown": "send SIGTERM to the broker's process; its process id is in the file pid in its data directory",
    "start_app": "pandomq start",
    "help": "pandomq ctl",
}
"""Commands with a meaning here that need no HTTP request."""


def ctl(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND [ARGUMENT]…", help="The command of rabbitmqctl, and its arguments.", show_default=False
        ),
    ] = None,
    vhost: Annotated[
        str, typer.Option("--vhost", "-p", help="Vhost of the command, unless the command is for all vhosts.")
    ] = "/",
    formatter: Annotated[str, typer.Option(help=f"Format of the output: {', '.join(FORMATTERS)}.")] = "table",
    json: Annotated[bool, typer.Option("--json", help="Short form of --formatter json.")] = False,
    silent: Annotated[bool, typer.Option("--silent", "-s", help="Print no table headers.")] = False,
    no_table_headers: Annotated[bool, typer.Option("--no-table-headers", help="Print no table headers.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Accepted for compatibility. No banners are ever printed.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            "-t",
            min=0,
            help="Time that await_startup waits for a broker, in seconds. Afterwards the exit status is 3.",
        ),
    ] = 300.0,
    priority: Annotated[
        int, typer.Option(help="Priority for set_policy and set_operator_policy. The highest applies.")
    ] = 0,
    apply_to: Annotated[
        str | None,
        typer.Option(
            help="Kind of objects, for set_policy (default: all) and set_operator_policy (default: queues), as in "
            "`pandomq policies set`."
        ),
    ] = None,
    if_empty: Annotated[
        bool, typer.Option("--if-empty", "-e", help="Delete the queue only if it is empty, for delete_queue.")
    ] = False,
    if_unused: Annotated[
        bool, typer.Option("--if-unused", "-u", help="Delete the queue only if it has no consumers, for delete_queue.")
    ] = False,
    url: Url = None,
) -> None:
    """Run a command of rabbitmqctl, for example `list_queues name messages`, `add_user` or `set_permissions`.

    Without a command, it lists all of them.
    """
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
        raise WrongUse(f"'{cell(formatter)}' is not a formatter: expected one of {', '.join(FORMATTERS)}")
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
        return f"{word} is not available over the HTTP API; use instead: {ELSEWHERE[word]}"
    nearest = difflib.get_close_matches(word, WORDS, n=1)
    meant = f": did you mean {nearest[0]}?" if nearest else "."
    return f"{cell(word)} is not a supported command of rabbitmqctl{meant} `pandomq ctl` lists all of them"
