"""The `pandomq` command."""

from __future__ import annotations

from typing import Annotated

import typer

from pandomq import __version__
from pandomq.cli.bench import bench_app
from pandomq.cli.config_command import show_config
from pandomq.cli.start import start

app = typer.Typer(
    name="pandomq",
    help="PandoMQ: an AMQP 0-9-1 broker that RabbitMQ's clients already know.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("start")(start)
app.command("config")(show_config)
app.add_typer(bench_app, name="bench")


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
