"""Which message is the newest of its key, for queues that keep one message per key.

A key is remembered as long as its newest message is in the queue, ready or unacked; an older one that comes back
meanwhile is out of date.
"""

from pandomq.kernel.plain.ring import Entry


class LastValues:
    """Sequences of the newest messages by the raw value of one header."""

    __slots__ = ("_header", "_newest")

    def __init__(self, header: bytes) -> None:
        self._header = header
        self._newest: dict[bytes, int] = {}

    def arrive(self, entry: Entry) -> int | None:
        """Notes an entry that enters the queue or comes back. The sequence that it makes out of date: of an older
        message (which need not be ready), its own if a newer one is there, or None."""
        key = entry.message.find_header(self._header)
        if key is None:
            return None
        newest = self._newest.get(key)
        if newest is not None and newest > entry.sequence:
            return entry.sequence
        self._newest[key] = entry.sequence
        return newest if newest != entry.sequence else None

    def leave(self, entry: Entry) -> None:
        """Forgets the key if the message that leaves was its newest."""
        key = entry.message.find_header(self._header)
        if key is not None and self._newest.get(key) == entry.sequence:
            del self._newest[key]
