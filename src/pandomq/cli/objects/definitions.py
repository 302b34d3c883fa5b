"""`pandomq definitions`: all declarations, as one JSON file: users, vhosts, permissions, policies, exchanges, queues,
bindings. No messages.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from pandomq.cli.api import Api, Url
from pandomq.cli.failures import WrongUse
from pandomq.cli.output import say

definitions_app = typer.Typer(
    name="definitions", help="Export and import the definitions of a broker as a JSON file.", no_args_is_help=True
)

FILE_BYTES_MAX: Final = 512 * 1024 * 1024
STANDARD: Final = Path("-")
OnlyVhost = Annotated[
    str | None,
    typer.Option(
        "--vhost",
        "-p",
        help=(
            "Select only policies, parameters, exchanges, queues and bindings of this vhost, and no users, vhosts or "
            "permissions. Without it: everything."
        ),
    ),
]


@definitions_app.command("export")
def export(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="File to write. - is standard output.")] = STANDARD,
    vhost: OnlyVhost = None,
    url: Url = None,
) -> None:
    """Export the definitions. Only the owner can read the file, because it contains password hashes."""
    export_definitions(Api.at(url), file, vhost)


@definitions_app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to read. - is standard input.", show_default=False)
    ],
    vhost: OnlyVhost = None,
    url: Url = None,
) -> None:
    """Import definitions. Users, vhosts, permissions, policies and limits of the file replace those of the same name,
    including passwords. Exchanges, queues and bindings that the broker lacks are declared; one that exists with other
    properties is an error. Nothing is deleted.
    """
    import_definitions(Api.at(url), file, vhost)


def export_definitions(api: Api, file: Path, vhost: str | None) -> None:
    answer = msgspec.json.format(api.fetch(*_path(vhost)), indent=2) + b"\n"
    if file == STANDARD:
        sys.stdout.write(answer.decode())
        return
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
            target.write(answer)
    except OSError as error:
        raise WrongUse(f"cannot write {file}: {error.strerror}") from None
    say(f"definitions written to {file}")


def import_definitions(api: Api, file: Path, vhost: str | None) -> None:
    content = _read(file)
    try:
        definitions = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise WrongUse(f"{file} is not JSON: {error}") from None
    if not isinstance(definitions, dict):
        raise WrongUse(f"{file} does not contain definitions: expected a JSON object")
    api.post(*_path(vhost), body=content)
    counted = ", ".join(f"{len(items)} {kind}" for kind, items in definitions.items() if isinstance(items, list))
    say(f"definitions imported: {counted or 'nothing'}")


def _path(vhost: str | None) -> tuple[str, ...]:
    return ("definitions",) if vhost is None else ("definitions", vhost)


def _read(file: Path) -> bytes:
    try:
        if file == STANDARD:
            content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with file.open("rb") as source:
                content = source.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise WrongUse(f"cannot read {file}: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        raise WrongUse(f"{file} is larger than {FILE_BYTES_MAX} bytes")
    return content
