"""The program of a driver: copies streams to a stream until it is ended. A restart continues from the checkpoint.

    python -m tests.spark.copy_program MASTER URL SOURCES COPY CHECKPOINT

Prints a line for each batch that had rows.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.spark.ledger import TRANSFORMATION
from tests.spark.sessions import SETTINGS, prepare_environment

POLL_S = 0.2


def main(master: str, url: str, sources: str, copy: str, checkpoint: str) -> None:
    prepare_environment(Path(checkpoint).parent)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master(master).appName("copy").config(map=dict(SETTINGS)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = (
        spark.readStream.format("pandomq")
        .options(url=url, streams=sources, startingOffsets="earliest", minPartitions="4")
        .load()
    )
    writer = rows.selectExpr(TRANSFORMATION).writeStream.format("pandomq").options(url=url, stream=copy)
    query = writer.option("checkpointLocation", checkpoint).start()
    told = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress["numInputRows"] and progress["batchId"] > told:
            told = progress["batchId"]
            print(f"batch {told}: {progress['numInputRows']} rows", flush=True)
        time.sleep(POLL_S)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
