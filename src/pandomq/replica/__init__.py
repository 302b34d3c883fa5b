"""Elects a root and replicates one log.

Pure: time arrives as tick(), peers as step(), chance is injected; what must happen outside is returned as effects, in
the order in which it must happen, and answered by completions. Entries are opaque bytes, but for the replica's own.
"""
