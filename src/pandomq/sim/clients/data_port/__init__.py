"""Clients of the data port: readers of streams, writers of staged batches, and clients that lease messages."""
