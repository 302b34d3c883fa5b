"""What a secondary gets of an entry: the commands in it, which are the configuration; and of none a message."""

from __future__ import annotations

from pandomq import kernel
from pandomq.kernel.records import ENTRY_START, BadEntry


class Commands:
    """`replica.excerpts.Excerpts`."""

    def of(self, payload: bytes) -> bytes:
        try:
            return kernel.without_messages(payload)
        except BadEntry:
            # Of a version that is not known here; whoever applies it will say so.
            return payload

    def is_empty(self, excerpt: bytes) -> bool:
        """All it has is the time."""
        return len(excerpt) <= ENTRY_START.size
