"""Settings that make sessions small and quick, and an environment in which executors find our code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pandomq
from pandomq.spark.java import use_java

from .early_worker import interpreter

SOURCES: Final = Path(pandomq.__file__).parents[1]
"""Executors import the sources that the tests import."""
REPOSITORY: Final = Path(__file__).parents[2]
"""For functions of tests that run on executors."""

SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Queries here are small and many: optimizations for long queries take longer than they save.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Half of what a small micro-batch costs are the files of its checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # Executors that were killed must not be held against the application.
    "spark.excludeOnFailure.enabled": "false",
    "spark.task.maxFailures": "4",
}


def environment_in(work: Path) -> dict[str, str]:
    """Returns the environment variables for Spark; `work` is for its files."""
    use_java()
    paths = [str(SOURCES), str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    python = str(interpreter(work))
    return {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(os.pathsep.join(paths).split(os.pathsep))),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work),
    }


def prepare_environment(work: Path) -> dict[str, str]:
    """The same in the environment of this process; call it before its first session."""
    chosen = environment_in(work)
    os.environ.update(chosen)
    # It would select a Spark other than the imported one.
    os.environ.pop("SPARK_HOME", None)
    return chosen
