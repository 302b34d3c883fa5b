"""Which message is the newest of its key, for queues that keep one message per key.

A key is remembered as long as its newest message is in the queue, ready or unacked; an older message that comes back in
the meantime is out of date.
"""

from pandomq.kernel.plain.message import Message


class LastValues:
    """Sequences of the newest messages by the raw value of one header."""

    __slots__ = ("_header", "_newest")

    def __init__(self, header: bytes) -> None:
        self._header = header
        self._newest: dict[bytes, int] = {}

    def key_of(self, message: Message) -> bytes | None:
        """None if the message has no such header; then it is never out of date, and makes no other message so."""
        return message.find_header(self._header)

    def arrive(self, key: bytes | None, sequence: int) -> int | None:
        """Notes a message that enters the queue or comes back. Returns the sequence that it makes out of date: that of
        an older message (which need not be ready), its own if a newer one is there, or None."""
        if key is None:
            return None
        newest = self._newest.get(key)
        if newest is not None and newest > sequence:
            return sequence
        self._newest[key] = sequence
        return newest if newest != sequence else None

    def leave(self, key: bytes | None, sequence: int) -> None:
        """Forgets the key if the message that leaves was its newest."""
        if key is not None and self._newest.get(key) == sequence:
            del self._newest[key]
