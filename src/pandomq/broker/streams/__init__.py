"""Streams: queues whose messages stay when they are read, in chunks; see docs/streams.md."""
