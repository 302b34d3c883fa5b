"""Reads a password from a file, standard input, or the terminal; never from the command line.

All users of the machine can see a command line, and it stays in the shell's history.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from pandomq.cli.config.sources import SECRET_BYTES_MAX, read_secret
from pandomq.cli.failures import WrongUse

STDIN: Final = Path("-")

PasswordFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Read the password from this file; - is standard input. Without the option, the command prompts for it.",
    ),
]


def read_password(file: Path | None, user: str) -> str:
    """A password that is not empty; anything else is a usage error."""
    if file is not None and file != STDIN:
        try:
            password = read_secret(file)
        except ValueError as error:
            raise WrongUse(str(error)) from None
    elif file is None and sys.stdin.isatty():
        password = str(typer.prompt(f"Password for {user}", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = sys.stdin.readline(SECRET_BYTES_MAX).rstrip("\r\n")
    if not password:
        raise WrongUse("the password is empty: enter at least one character")
    return password
