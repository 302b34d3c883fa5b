"""The options that all jobs on Spark have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer


def in_a_directory(path: Path | None) -> Path | None:
    """Checks the path of a file that is written after all the work: a wrong path should be reported before."""
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"directory '{path.parent}' does not exist: create it, or choose another one")
    return path


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    master: Annotated[str, typer.Option(help="Master URL of Spark, as spark://host:7077.")] = "local[*]"
    json: Annotated[
        Path | None, typer.Option("--json", callback=in_a_directory, help="Write the summary as JSON to this file.")
    ] = None
    report: Annotated[
        Path | None, typer.Option(callback=in_a_directory, help="Write a report with plots as HTML to this file.")
    ] = None
