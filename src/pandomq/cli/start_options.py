"""Options that set keys of the configuration: of `pandomq start`, and of `pandomq config`, which shows their effect.

None means that an option was not given, so that the environment, the file or the default decides.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pandomq import limits
from pandomq.cli.config.load import ConfigurationError, Loaded, load
from pandomq.cli.output import say


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options as they were typed, with their descriptions."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help=(
                "Read the configuration from this file. The environment variable PANDOMQ_CONFIG can name the file, too."
            ),
            show_default="pandomq.toml, if there is one",
        ),
    ] = None
    name: Annotated[str | None, typer.Option(help="Name of the broker, unique in its cluster.", show_default="n1")] = (
        None
    )
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address for AMQP clients. Port 0 takes a free port.",
            show_default="127.0.0.1:5672",
        ),
    ] = None
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the HTTP API. The value off disables it.",
            show_default="127.0.0.1:15672",
        ),
    ] = None
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Data directory of the broker.", show_default="pandomq-data/NAME")
    ] = None
    join: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,…",
            help=(
                "Join the cluster of these brokers as a secondary, which has no vote. The cluster's key is needed as "
                "well (cluster.key_file)."
            ),
            show_default=False,
        ),
    ] = None
    memory: Annotated[
        bool | None,
        typer.Option(
            "--memory",
            help="Keep the log in memory only. All messages and declarations are lost when the broker stops.",
        ),
    ] = None
    memory_mb: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="MIB",
            help="Block publishing connections while messages take more memory than this, in MiB.",
            show_default="60 % of the memory",
        ),
    ] = None
    heartbeat: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="SECONDS",
            help="Propose this heartbeat interval to clients, in seconds. 0 disables heartbeats.",
            show_default="60",
        ),
    ] = None
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Log messages of this severity and above: debug, info, warning or error.",
            show_default="info",
        ),
    ] = None
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Write log lines as text or as json.", show_default="text")
    ] = None

    def load(self) -> Loaded:
        """The effective values now: files and environment are read again. Raises ConfigurationError."""
        return load(
            self.config,
            os.environ,
            {
                "node.name": self.name,
                "node.listen": self.listen,
                "node.http": self.http,
                "node.data": None if self.data is None else str(self.data),
                "cluster.join": self.join,
                "log.store": "memory" if self.memory else None,
                "node.log_level": None if self.log_level is None else self.log_level.lower(),
                "node.log_format": self.log_format,
                "limits.memory_bytes_max": None if self.memory_mb is None else self.memory_mb * limits.MIB,
                "limits.heartbeat_s": self.heartbeat,
            },
        )


def load_or_exit(options: StartOptions) -> Loaded:
    """The effective values; ends the program with 2 and one line for each problem if there are any."""
    try:
        return options.load()
    except ConfigurationError as error:
        for problem in error.problems:
            say(f"pandomq: {problem}")
        raise typer.Exit(2) from None
