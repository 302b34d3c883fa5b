"""`pandomq start`: one broker in the foreground."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Final

import typer

from pandomq import __version__, kernel
from pandomq.node.settings import NodeSettings
from pandomq.runtime.endpoints import Endpoints
from pandomq.runtime.listen import Address
from pandomq.runtime.process import machine_memory_bytes, run

MEMORY_PERCENT: Final = 60
"""The memory watermark's share of the machine, as RabbitMQ 4's."""

log = logging.getLogger("pandomq")


def start(
    name: Annotated[str, typer.Option(help="The broker's name.")] = "n1",
    listen: Annotated[
        str,
        typer.Option(help="Where clients connect: HOST:PORT. Port 0 takes a free one.", envvar="PANDOMQ_NODE_LISTEN"),
    ] = "127.0.0.1:5672",
    data: Annotated[
        Path | None,
        typer.Option(help="The broker's directory.  [default: pandomq-data/NAME]", envvar="PANDOMQ_NODE_DATA"),
    ] = None,
    memory_mb: Annotated[
        int | None,
        typer.Option(min=1, help="Hold publishers back while messages take more than this.  [default: 60 % of memory]"),
    ] = None,
    heartbeat: Annotated[int, typer.Option(min=0, max=65535, help="Heartbeat proposed to clients, in seconds.")] = 60,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Starts a broker in the foreground; ^C or SIGTERM stops it."""
    if log_level.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise typer.BadParameter(f"'{log_level}' is not a log level: expected debug, info, warning or error")
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    try:
        address = Address.parse(listen)
        settings = NodeSettings(
            name=name,
            user=os.environ.get("PANDOMQ_AUTH_DEFAULT_USER", "guest"),
            password=_default_password(),
            heartbeat_s=heartbeat,
            memory_bytes_max=memory_mb * 1024 * 1024 if memory_mb else machine_memory_bytes() * MEMORY_PERCENT // 100,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        run(settings, Endpoints(amqp=address), data or Path("pandomq-data") / name, _ready)
    except OSError as error:
        typer.echo(
            f"pandomq: cannot start broker {name} on {address}: {error.strerror or error}. {_advice(error)}", err=True
        )
        raise typer.Exit(1) from None


def _default_password() -> str:
    path = os.environ.get("PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE")
    if path is None:
        return os.environ.get("PANDOMQ_AUTH_DEFAULT_PASSWORD", "guest")
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise ValueError(f"PANDOMQ_AUTH_DEFAULT_PASSWORD_FILE: cannot read {path}: {error.strerror}") from None


def _ready(urls: list[str]) -> None:
    log.info(
        "PandoMQ %s ready on %s (kernel: %s); state is in memory and ends with this process",
        __version__,
        ", ".join(urls),
        kernel.KIND,
    )


def _advice(error: OSError) -> str:
    import errno

    if error.errno == errno.EADDRINUSE:
        return "Another program listens there: stop it, or choose another --listen."
    if error.errno in (errno.EACCES, errno.EPERM):
        return "Choose a port above 1023 and a directory that this user may write (--data)."
    if error.errno == errno.EADDRNOTAVAIL:
        return "That address is not one of this machine's: choose another --listen."
    return "Look at --listen and --data."
