"""Runs several targets of the Makefile at the same time.

    python tools/side_by_side.py TARGET [TARGET …]

The first target writes to the terminal. The output of each other one is collected and printed as a whole when that
target ends. The tool also prints how long each target took. It exits with 1 if any target failed, after all of them
have ended. ^C reaches all of them, because they are in the same process group.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, NamedTuple

MAKE = ("make", "--no-print-directory")
POLL_S = 0.1


class Running(NamedTuple):
    name: str
    process: subprocess.Popen[bytes]
    output: IO[bytes] | None
    """None if the target writes to the terminal."""
    begun_s: float


def begin(name: str, command: Sequence[str], *, collected: bool) -> Running:
    output = tempfile.TemporaryFile() if collected else None  # noqa: SIM115
    process = subprocess.Popen([*command, name], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    return Running(name, process, output, time.monotonic())


def report(target: Running) -> None:
    """Prints the output and the result of a target that has ended."""
    if target.output is not None:
        target.output.seek(0)
        sys.stdout.buffer.write(b"\n" + target.output.read())
        target.output.close()
    code = target.process.returncode
    result = "succeeded" if not code else f"failed with exit code {code}"
    print(f"{target.name} {result} after {time.monotonic() - target.begun_s:.0f} s", flush=True)


def run(names: Sequence[str], command: Sequence[str] = MAKE) -> int:
    """Returns the exit code: 1 if any target failed."""
    running = [begin(name, command, collected=place > 0) for place, name in enumerate(names)]
    failed = False
    while running:
        for target in [target for target in running if target.process.poll() is not None]:
            running.remove(target)
            report(target)
            failed |= target.process.returncode != 0
        time.sleep(POLL_S)
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit((__doc__ or "").strip())
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
