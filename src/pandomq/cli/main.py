"""The `pandomq` command."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pandomq import __version__
from pandomq.cli.bench import bench_app
from pandomq.cli.cluster.command import cluster_app
from pandomq.cli.config_command import show_config
from pandomq.cli.ctl import ctl
from pandomq.cli.definitions import definitions_app
from pandomq.cli.failures import Failure
from pandomq.cli.listing import LISTINGS
from pandomq.cli.members import members_app, promote
from pandomq.cli.output import say
from pandomq.cli.permissions import permissions_app
from pandomq.cli.pipeline.command import pipeline_app
from pandomq.cli.policies import policies_app
from pandomq.cli.sim import sim
from pandomq.cli.start import start
from pandomq.cli.status import status
from pandomq.cli.store import store_app
from pandomq.cli.top import top
from pandomq.cli.trace import trace_app
from pandomq.cli.users import users_app
from pandomq.cli.vhosts import vhosts_app


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
app.command("start")(start)
app.add_typer(cluster_app)
app.command("config")(show_config)
app.command("status")(status)
app.add_typer(members_app)
app.command("promote")(promote)
for name, command in LISTINGS.items():
    app.command(name)(command)
app.command("top")(top)
app.add_typer(users_app)
app.add_typer(vhosts_app)
app.add_typer(permissions_app)
app.add_typer(policies_app)
app.add_typer(definitions_app)
app.add_typer(trace_app)
app.command("ctl")(ctl)
app.add_typer(store_app)
app.add_typer(bench_app, name="bench")
app.command("sim")(sim)
app.add_typer(pipeline_app)


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
