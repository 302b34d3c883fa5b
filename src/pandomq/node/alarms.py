"""The memory watermark: above it publishers are held back, consumers continue.

The watermark applies to what the broker itself accounts for (bodies, headers and a fixed cost per message, and data
that will become messages), not to the size of the process: that one shrinks late or never, and would keep publishers
waiting after the queues are empty. The alarm ends somewhat below the mark, so that it does not flap.
"""

from typing import Final

MESSAGE_OVERHEAD_BYTES: Final = 160
"""Memory of a message beyond its bytes: the object, its three byte strings' heads, and its place in a queue."""
CLEAR_PERCENT: Final = 95


class MemoryAlarm:
    __slots__ = ("_clear_bytes", "mark_bytes", "raised")

    def __init__(self, mark_bytes: int) -> None:
        self.raised = False
        self.set_mark(mark_bytes)

    def set_mark(self, mark_bytes: int) -> None:
        self.mark_bytes = mark_bytes
        self._clear_bytes = mark_bytes * CLEAR_PERCENT // 100

    def update(self, held_bytes: int, held_messages: int) -> bool:
        """Takes the current account; True if the alarm was raised or cleared by it."""
        used = held_bytes + held_messages * MESSAGE_OVERHEAD_BYTES
        before = self.raised
        self.raised = used > (self._clear_bytes if before else self.mark_bytes)
        return self.raised is not before
