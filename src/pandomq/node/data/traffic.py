"""The traffic of the data port, of one client or of all."""

from __future__ import annotations


class Traffic:
    __slots__ = ("received_bytes", "requests", "sent_bytes")

    def __init__(self) -> None:
        self.received_bytes = 0
        self.sent_bytes = 0
        """Counted when they are queued for sending."""
        self.requests = 0
        """Requests that were begun."""
