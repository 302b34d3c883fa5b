"""Spark as a client: the rates of its reads and writes, and the cost of a micro-batch."""
