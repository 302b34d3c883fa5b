"""The client of the data port: streams by offset, staged batches, leases. `client` is where to begin.

Spark's driver and executors import it, so it needs nothing but the standard library and vocabulary that needs no more.
"""
