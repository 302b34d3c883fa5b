"""Where a password comes from: a file, standard input, or the person at the terminal; never from the command line.

A command line is seen by everybody on the machine, and stays in the shell's history.
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
        metavar="FILE", help="Read the password from this file; - is standard input. Otherwise you are asked."
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
        raise WrongUse("the password is empty")
    return password
