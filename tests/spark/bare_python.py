"""A Python with the dependencies of PySpark, but without PandoMQ: a machine where PandoMQ is not installed."""

from __future__ import annotations

import os
from pathlib import Path

import pyspark

from pandomq.spark.java import java_home

from .early_worker import interpreter

INSTALLED = Path(pyspark.__file__).parents[1]


class BarePython:
    """`program` is the interpreter, `environment` is the environment for it, and for the Spark that it starts."""

    def __init__(self, directory: Path) -> None:
        packages = directory / "packages"
        packages.mkdir(parents=True)
        for entry in INSTALLED.iterdir():
            if "pandomq" not in entry.name:
                (packages / entry.name).symlink_to(entry)
        # Without its site a Python ignores .pth files, so an editable install is not visible.
        self.program = interpreter(directory, "-S")
        self.environment = {
            "HOME": str(directory),
            "JAVA_HOME": str(java_home()),
            "PATH": os.defpath,
            "PYSPARK_PYTHON": str(self.program),
            "PYSPARK_DRIVER_PYTHON": str(self.program),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(packages),
            "SPARK_HOME": str(INSTALLED / "pyspark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(directory),
        }
