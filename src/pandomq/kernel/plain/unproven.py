"""What the clients of a channel have settled at the root, and the root's log may not have yet: by the places that the
messages have there, so that it can be settled once more at the next root.

Settling twice by place is settling once. So what is proven late, or never, does no harm.
"""

import struct
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import BASIC, FRAME_END, METHOD, SETTLE, SETTLE_ROWS_MAX

if TYPE_CHECKING:
    from pandomq.kernel.plain.session import Session

SETTLE_START: Final = struct.Struct(">BHIHHQI")
"""A frame's start, class and method, the number that is asked for, and how long the rows are."""
ROW: Final = struct.Struct(">QQQB")


class Unproven:
    """Rows as they are written, numbered up to `last`."""

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
        """The last so many."""
        rows = list(islice(self._rows, len(self._rows) - count, None))
        for start in range(0, count, SETTLE_ROWS_MAX):
            data = b"".join(rows[start : start + SETTLE_ROWS_MAX])
            size = SETTLE_START.size - 7 + len(data)
            head = SETTLE_START.pack(METHOD, channel_number, size, BASIC, SETTLE, 0, len(data))
            uplink.write(b"".join((head, data, bytes((FRAME_END,)))))
