"""The `pandomq` command."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from pandomq import __version__
from pandomq.cli.failures import Failure
from pandomq.cli.output import say
from pandomq.cli.start import start

START: Final = "start"


class Commands(TyperGroup):
    """In the order in which they are added here; a broker's refusal or silence becomes a line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Failure as error:
            say(f"pandomq: {error}")
            raise typer.Exit(error.exit_code) from None


app = typer.Typer(
    name="pandomq",
    help="PandoMQ: an AMQP 0-9-1 broker that RabbitMQ's clients already know.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(START)(start)
if sys.argv[1:2] != [START]:
    # A broker needs none of them, and should not be late for their sake.
    from pandomq.cli.other_commands import add_all

    add_all(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pandomq {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Options that stand before the command."""


if __name__ == "__main__":
    app()
