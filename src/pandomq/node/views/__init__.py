"""Frozen copies of the state of this broker and of its cluster, for the HTTP API and metrics."""
