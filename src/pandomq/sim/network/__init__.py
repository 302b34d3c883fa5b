"""Connections between simulated brokers, and between them and clients."""
