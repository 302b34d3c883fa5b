"""`pandomq config`: the effective values, and their origins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pandomq.cli.config.keys import MASK
from pandomq.cli.config.load import Holding, Loaded
from pandomq.cli.failures import WrongUse
from pandomq.cli.output import print_json, print_table
from pandomq.cli.shared_options import takes
from pandomq.cli.start_options import StartOptions, load_or_exit


@takes(StartOptions)
def show_config(
    options: StartOptions,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only check whether a broker would start with this file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Show the configuration that `pandomq start` would use with the same options, and the source of each value.

    An option overrides the environment, which overrides the file, which overrides the default.
    """
    if check is not None:
        if options.config is not None:
            raise WrongUse(f"--check {check} and --config {options.config} both name a file: give one of them")
        options = msgspec.structs.replace(options, config=check)
    loaded = load_or_exit(options)
    if check is not None:
        typer.echo(f"{check}: nothing is wrong")
    elif json:
        print_json(_as_json(loaded))
    else:
        print_table(
            ["key", "value", "from"],
            [[h.key.path, h.key.show(h.value), str(h.origin)] for h in loaded.holdings.values()],
        )


def _as_json(loaded: Loaded) -> bytes:
    keys = [
        {"key": path, "value": _shown(holding), "origin": holding.origin.kind, "from": holding.origin.where or None}
        for path, holding in loaded.holdings.items()
    ]
    return msgspec.json.encode({"file": None if loaded.file is None else str(loaded.file), "keys": keys})


def _shown(holding: Holding) -> object:
    if holding.key.secret:
        return MASK
    return str(holding.value) if isinstance(holding.value, Path) else holding.value
