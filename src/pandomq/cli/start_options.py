"""Options that set keys of the configuration: of `pandomq start`, and of `pandomq config`, which shows what they do.

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

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration; also PANDOMQ_CONFIG in the environment.",
        show_default="pandomq.toml, if there is one",
    ),
]
Name = Annotated[str | None, typer.Option(help="The broker's name.", show_default="n1")]
Listen = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.", show_default="127.0.0.1:5672"
    ),
]
Http = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Where the HTTP API is; off: nowhere.", show_default="127.0.0.1:15672"),
]
Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The broker's directory.", show_default="pandomq-data/NAME")
]
Join = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,…", help="Join the brokers there as a secondary; wants cluster.key.", show_default=False
    ),
]
Memory = Annotated[
    bool | None, typer.Option("--memory", help="Keep nothing on disk: all is lost when the broker stops.")
]
MemoryMb = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="MIB",
        help="Hold publishers back while messages take more than this.",
        show_default="60 % of the memory",
    ),
]
Heartbeat = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, metavar="SECONDS", help="Heartbeat proposed to clients; 0: none.", show_default="60"
    ),
]
LogLevel = Annotated[
    str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.", show_default="info")
]
LogFormat = Annotated[str | None, typer.Option(metavar="FORMAT", help="text or json.", show_default="text")]


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """As they were typed."""

    config: Path | None
    name: str | None
    listen: str | None
    http: str | None
    data: Path | None
    join: str | None
    memory: bool | None
    memory_mb: int | None
    heartbeat: int | None
    log_level: str | None
    log_format: str | None

    def load(self) -> Loaded:
        """What holds now: files and environment are read anew. Raises ConfigurationError."""
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
    """What holds; ends the program with 2 and one line for each problem if something is wrong."""
    try:
        return options.load()
    except ConfigurationError as error:
        for problem in error.problems:
            say(f"pandomq: {problem}")
        raise typer.Exit(2) from None
