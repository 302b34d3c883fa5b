"""Leases: messages of a queue, read by offset as often as needed before they are done; see docs/leases.md."""
