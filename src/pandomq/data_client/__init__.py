"""The client of the data port: streams by offset, staged batches, leases. Start with `client`.

Spark's driver and executors import it, so it needs only the standard library and vocabulary without further needs.
"""
