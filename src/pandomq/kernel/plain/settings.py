"""The arguments with which a queue was declared, as far as the kernel uses them."""

from typing import NamedTuple

from pandomq.kernel.constants import DROP_HEAD, NEVER_MS
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.ready import Ready


class Settings(NamedTuple):
    """Numbers below zero mean no limit."""

    ttl_ms: int = -1
    length_max: int = -1
    bytes_max: int = -1
    overflow: int = DROP_HEAD
    dead_letters: bool = False
    delivery_limit: int = -1
    counts_deliveries: bool = False

    def deadline_ms(self, message: Message, now_ms: int) -> int:
        """The deadline of a message that arrives now."""
        ttl_ms, expiration_ms = self.ttl_ms, message.expiration_ms
        if ttl_ms < 0:
            return NEVER_MS if expiration_ms < 0 else now_ms + expiration_ms
        return now_ms + (ttl_ms if expiration_ms < 0 else min(ttl_ms, expiration_ms))

    def overflowed_by(self, ready: Ready, count: int, size: int) -> bool:
        """Whether the ready messages, with this many more, exceed a limit."""
        return 0 <= self.length_max < ready.count + count or 0 <= self.bytes_max < ready.bytes + size
