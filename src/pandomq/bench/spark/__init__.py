"""Spark as a client: what its reads and writes reach, and what a micro-batch costs. tools/bench_spark.py measures."""
