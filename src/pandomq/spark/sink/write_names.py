"""The names at the brokers of the writes that users have named.

A write is named by its user (`writeId`) and by its target: writes of one `writeId` and batch to two targets are two
writes. Version 0.1 took the `writeId` alone; no such name has a dot.
"""

from __future__ import annotations

import hashlib
from typing import Final

_TARGET_DIGITS: Final = 16


def query_name(write_id: str, exchange: str, routing_key: str) -> str:
    """`routing_key` is that of the write's options; for a stream it is its name."""
    target = f"{exchange}\0{routing_key}".encode()
    return f"{write_id}.{hashlib.sha256(target).hexdigest()[:_TARGET_DIGITS]}"
