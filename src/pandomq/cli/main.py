"""The `pandomq` command."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from pandomq import __version__
from pandomq.cli.failures import Failure
from pandomq.cli.output import say
from pandomq.cli.start import start

START: Final = "start"


class CommandGroup(TyperGroup):
    """Lists commands in the order in which they were added; a broker's rejection or silence becomes a line and an exit
    code. In help texts it joins the lines of each paragraph, and shows no type for flags."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _tidy_help(self)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Failure as error:
            say(f"pandomq: {error}")
            raise typer.Exit(error.exit_code) from None


def _tidy_help(command: Any) -> None:
    """Changes the help of this command and of those below it. Typer would keep the line breaks of a docstring from its
    second paragraph on, and show `<bool>` behind every flag."""
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for parameter in command.get_params(command.context_class(command)):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for below in getattr(command, "commands", {}).values():
        _tidy_help(below)


app = typer.Typer(
    name="pandomq",
    help="PandoMQ is an AMQP 0-9-1 message broker for clients of RabbitMQ.",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command(START)(start)
if sys.argv[1:2] != [START]:
    # `pandomq start` needs none of them, and should not be delayed by them.
    from pandomq.cli.other_commands import add_all

    add_all(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pandomq {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that precede the command."""


if __name__ == "__main__":
    app()
