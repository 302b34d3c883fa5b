"""A stream of orders, what was sold to each country, and a stream of large orders: said, and not programmed.

`orders` takes from the broker's stream what is new since the last run, `sales` is made anew from all of it, and what is
large goes back to the broker, once. Streams `orders` and `large-orders` have to exist.
"""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

URL = os.environ.get("PANDOMQ_AMQP_URL", "amqp://guest:guest@localhost:5672/")
LARGE = 50

spark = SparkSession.active()

dp.create_sink("large_orders_stream", "pandomq", {"url": URL, "stream": "large-orders"})


@dp.table
def orders() -> DataFrame:
    stream = spark.readStream.format("pandomq").option("url", URL).option("stream", "orders")
    stream = stream.option("startingOffsets", "earliest")
    rows = stream.option("bodySchema", "id BIGINT, country STRING, amount DOUBLE").load()
    return rows.where("malformed IS NULL").select("offset", "time", "value.*")


@dp.materialized_view
def sales() -> DataFrame:
    by_country = spark.read.table("orders").groupBy("country")
    return by_country.agg(f.count("*").alias("orders"), f.sum("amount").alias("amount"))


@dp.append_flow(target="large_orders_stream")
def large_orders() -> DataFrame:
    large = spark.readStream.table("orders").where(f.col("amount") >= LARGE)
    return large.select(f.to_json(f.struct("id", "country", "amount")).alias("body"))
