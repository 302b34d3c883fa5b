"""A Python for Spark that connects before it imports anything.

Spark starts a process for each streaming source, and waits ten seconds until it connects, which no setting changes. The
process imports half of PySpark first, and on a machine with many times more work than cores that takes longer. This
program connects at once, and then runs the module that Spark asked for with that connection. `interpreter` makes the
program that Spark starts instead of Python.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE = "pyspark.sql.streaming.python_streaming_source_runner"
INTERPRETER = """\
#!/bin/sh
[ "$2" = {module} ] && exec {python} "{program}" "$2"
exec {python} "$@"
"""
PATIENCE_S = 300.0


def interpreter(directory: Path, *options: str) -> Path:
    """Returns a Python like this one with these options, except for the module for which Spark does not wait long
    enough."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "python"
    draft = directory / f"python.{os.getpid()}"
    python = " ".join((f'"{sys.executable}"', *options))
    draft.write_text(INTERPRETER.format(module=MODULE, python=python, program=Path(__file__).resolve()))
    draft.chmod(0o755)
    draft.replace(program)
    return program


def connect() -> socket.socket:
    """Connects to the process that started this one; sends the secret, and the process id, as PySpark would."""
    secret = os.environ["PYTHON_WORKER_FACTORY_SECRET"].encode()
    connection = socket.create_connection(("127.0.0.1", int(os.environ["PYTHON_WORKER_FACTORY_PORT"])), PATIENCE_S)
    connection.sendall(struct.pack("!i", len(secret)) + secret)
    with connection.makefile("rb", 0) as answers:
        (size,) = struct.unpack("!i", answers.read(4))
        if answers.read(size) != b"ok":
            raise ConnectionError("Spark does not take its own secret")
    connection.sendall(struct.pack("!i", os.getpid()))
    return connection


def main(module: str) -> None:
    connection = connect()
    # The directory of this file must not be a place to import from.
    del sys.path[0]
    import runpy
    from contextlib import contextmanager
    from typing import Any

    from pyspark import worker_util

    @contextmanager
    def connected(timeout: int | None = -1) -> Iterator[Any]:
        connection.settimeout(timeout if timeout is None or timeout > 0 else PATIENCE_S)
        with connection.makefile("rwb") as file:
            yield file

    worker_util.get_sock_file_to_executor = connected
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1])
