"""`python -m pandomq.spark.archive FILE.zip`: the modules for executors, for `spark-submit --py-files`.

The modules of this room and what they import of the package, found by importing them: none needs a compiler or a
library that PySpark does not have itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import pandomq

PACKAGE: Final = Path(pandomq.__file__).parent
ROOMS: Final = ("spark", "data_client")
VOCABULARY: Final = (
    "__init__.py",
    "chunk_form.py",
    "data_form.py",
    "errors.py",
    "fieldtable.py",
    "limits.py",
    "trace_form.py",
)
ENTRANCE: Final = "pyspark_pandomq.py"


def members() -> dict[str, Path]:
    """Each file by its name in the archive."""
    files = [PACKAGE / name for name in VOCABULARY]
    for room in ROOMS:
        files += sorted((PACKAGE / room).rglob("*.py"))
    found = {f"pandomq/{path.relative_to(PACKAGE).as_posix()}": path for path in files}
    return found | {ENTRANCE: PACKAGE.parent / ENTRANCE}


def write(path: Path) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, source in members().items():
            archive.write(source, name)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m pandomq.spark.archive FILE.zip\n")
        return 2
    write(Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
