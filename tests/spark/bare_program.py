"""The program of a machine where PySpark is installed and PandoMQ is not: writes rows to a stream, copies that to
another one, reads the copy, and prints the result as a line of JSON.

    PYTHONPATH=pandomq-spark.zip spark-submit --py-files pandomq-spark.zip bare_program.py
    SPARK_REMOTE=sc://HOST:PORT python bare_program.py

BROKER_OPTIONS, a JSON object, has the addresses of the brokers, CHECKPOINT the directory for Spark's progress.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
from typing import Any

from pyspark.sql import SparkSession

ROWS = 100


def place_of_code(_number: int) -> str:
    import pandomq

    return pandomq.__file__


def copy(spark: Any, place: dict[str, str], checkpoint: str) -> None:
    numbers = spark.range(0, ROWS, 1, 2).selectExpr("concat('row ', id) as body", "map('n', id) as headers")
    numbers.write.format("pandomq").options(stream="sent", **place).mode("append").save()
    rows = spark.readStream.format("pandomq").options(stream="sent", startingOffsets="earliest", **place).load()
    writer = rows.selectExpr("upper(cast(body as string)) as body").writeStream.format("pandomq")
    writer = writer.options(stream="copied", checkpointLocation=checkpoint, **place)
    writer.trigger(availableNow=True).start().awaitTermination()


def plans(frame: Any) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        for mode in ("extended", "formatted", "cost"):
            frame.explain(mode)
    return shown.getvalue()


def refusal(spark: Any, place: dict[str, str]) -> str:
    try:
        spark.read.format("pandomq").options(stream="nothing", **place).load().collect()
    except Exception as refused:
        return str(refused)
    return ""


def main() -> None:
    spark: Any = SparkSession.builder.getOrCreate()
    remote = "SPARK_REMOTE" in os.environ
    place = json.loads(os.environ["BROKER_OPTIONS"])
    copy(spark, place, os.environ["CHECKPOINT"])
    frame = spark.read.format("pandomq").options(stream="copied", **place).load()
    code = [] if remote else spark.sparkContext.parallelize([0], 1).map(place_of_code).collect()
    found = {
        "client_has_it": importlib.util.find_spec("pandomq") is not None,
        "code": code,
        "bodies": sorted(bytes(row["body"]).decode() for row in frame.collect()),
        "plans": plans(frame),
        "refusal": refusal(spark, place),
    }
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
