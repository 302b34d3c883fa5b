"""All commands but the one that starts a broker, in the order in which they are listed."""

from __future__ import annotations

import typer

from pandomq.cli.bench.command import bench_app
from pandomq.cli.cluster.command import cluster_app
from pandomq.cli.config.command import show_config
from pandomq.cli.ctl.command import ctl
from pandomq.cli.members import members_app, promote
from pandomq.cli.objects.definitions import definitions_app
from pandomq.cli.objects.listing import LISTINGS
from pandomq.cli.objects.permissions import permissions_app
from pandomq.cli.objects.policies import policies_app
from pandomq.cli.objects.users import users_app
from pandomq.cli.objects.vhosts import vhosts_app
from pandomq.cli.pipeline.command import pipeline_app
from pandomq.cli.sim.command import sim
from pandomq.cli.status import status
from pandomq.cli.store import store_app
from pandomq.cli.top import top
from pandomq.cli.trace import trace_app


def add_all(app: typer.Typer) -> None:
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
