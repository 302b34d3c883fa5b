"""The Spark session of a job: on this machine's cores unless another master is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandomq
from pandomq.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
SETTINGS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
ON_THIS_MACHINE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    # Half of the cost of a small micro-batch are the files of its checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


@contextmanager
def spark_session(job: str, master: str = LOCAL, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Ends with the block. Executors on other machines need this package. Raises JavaMissing."""
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sources = str(Path(pandomq.__file__).parents[1])
    paths = [sources, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(os.pathsep.join(paths).split(os.pathsep)))
    chosen: dict[str, Any] = SETTINGS | (ON_THIS_MACHINE if master.startswith("local") else {}) | dict(settings or {})
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(master).appName(f"pandomq {job}").config(map=chosen).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
