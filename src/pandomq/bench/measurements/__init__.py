"""Measurements beside plain throughput and latency, one per file."""
