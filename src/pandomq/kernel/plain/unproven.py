"""Settlements of a channel's clients at the root that the root's log may not have yet. They are kept by the places that
the messages have there, so that they can be repeated at the next root.

Settling twice by place has the same effect as settling once. So a proof that comes late, or never, does no harm.
"""

import struct
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import BASIC, FRAME_END, METHOD, SETTLE, SETTLE_ROWS_MAX

if TYPE_CHECKING:
    from pandomq.kernel.plain.session import Session

SETTLE_START: Final = struct.Struct(">BHIHHQI")
"""A frame's start, class and method, the number to which the root replies, and the length of the rows."""
ROW: Final = struct.Struct(">QQQB")


class Unproven:
    """Rows in their wire form, numbered up to `last`."""

    __slots__ = ("_rows", "last")

    def __init__(self) -> None:
        self._rows: deque[bytes] = deque()
        self.last = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, queue_id: int, sequence: int, term: int, method_id: int) -> None:
        self._rows.append(ROW.pack(queue_id, sequence, term, method_id))
        self.last += 1

    def prove(self, number: int) -> None:
        while self._rows and self.last - len(self._rows) < number:
            self._rows.popleft()

    def clear(self) -> None:
        self._rows.clear()

    def write(self, uplink: "Session", channel_number: int, count: int) -> None:
        """Writes the last `count` rows."""
        rows = list(islice(self._rows, len(self._rows) - count, None))
        for start in range(0, count, SETTLE_ROWS_MAX):
            data = b"".join(rows[start : start + SETTLE_ROWS_MAX])
            size = SETTLE_START.size - 7 + len(data)
            head = SETTLE_START.pack(METHOD, channel_number, size, BASIC, SETTLE, 0, len(data))
            uplink.write(b"".join((head, data, bytes((FRAME_END,)))))
