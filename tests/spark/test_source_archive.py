"""The archive for executors on which the package is not installed: it is whole, and needs PySpark only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from pandomq.spark import archive

ALLOWED: Final = {"numpy", "pandas", "pyarrow", "pyspark", "py4j"}
"""With what they import themselves, found by importing them first."""

PROGRAM: Final = """
import json, sys
sys.path = [path for path in sys.path if path not in sys.argv[3:]]
import numpy, pandas, pyarrow, pyarrow.compute, pyarrow.json, pyspark.sql.datasource, pyspark.sql.pandas.types
before = set(sys.modules)
sys.path.insert(0, sys.argv[1])
import pyspark_pandomq, importlib, zipfile
for name in zipfile.ZipFile(sys.argv[1]).namelist():
    if name.startswith("pandomq/") and not name.endswith("__init__.py"):
        importlib.import_module(name[:-3].replace("/", "."))
new = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
print(json.dumps([sorted(new), pyspark_pandomq.__file__, sys.modules["pandomq"].__file__]))
"""


def test_the_archive_is_all_that_executors_need(tmp_path: Path) -> None:
    path = tmp_path / "pandomq-spark.zip"
    assert archive.main([str(path)]) == 0
    # Editable installs find the package through a hook, which must not help here.
    program = "import sys; sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n" + PROGRAM
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), "", str(archive.PACKAGE.parent)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    imported, entrance, package = json.loads(done.stdout.splitlines()[-1])
    assert entrance.startswith(str(path))
    assert package.startswith(str(path))
    assert set(imported) - ALLOWED <= {"pandomq", "pyspark_pandomq"}
