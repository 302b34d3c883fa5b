"""Streams and queues as Spark sources and sinks, and the archive, replay, rollup and audit pipelines.

Ships to Spark's executors, and so imports nothing of the package but the vocabulary, the journal's formats and the
simulator's checkers.
"""
