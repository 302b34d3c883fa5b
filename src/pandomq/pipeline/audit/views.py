"""Numbers and strings anywhere in a file, many at a time: overlapping views of its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]

SPARE_BYTES = 32
"""Behind the last byte, so that reading the last record finds zeros instead of nothing."""


class ByteViews:
    """For bytes that do not change. Offsets must be within them."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._padded = data + bytes(SPARE_BYTES)
        self.octets = np.frombuffer(self._padded, np.uint8)
        self._of: dict[str, npt.NDArray[Any]] = {}

    def numbers(self, kind: str, at: Numbers) -> Numbers:
        """Numbers of this numpy type, such as `<u4`; those beyond 63 bits become negative."""
        view = self._of.get(kind)
        if view is None:
            size = np.dtype(kind).itemsize
            count = len(self._padded) - size + 1
            view = np.ndarray((count,), np.dtype(kind), self._padded, 0, (1,))
            self._of[kind] = view
        found: Numbers = view[at].astype(np.int64)
        return found

    def octets_at(self, at: Numbers) -> Numbers:
        found: Numbers = self.octets[at].astype(np.int64)
        return found

    def strings(self, at: Numbers, sizes: Numbers) -> tuple[npt.NDArray[np.int32], bytes]:
        """The concatenated strings, and the starts of each and the end of the last one."""
        ends = np.cumsum(sizes)
        begins = ends - sizes
        total = int(ends[-1]) if len(ends) else 0
        places = np.repeat(at - begins, sizes) + np.arange(total)
        offsets = np.zeros(len(at) + 1, np.int32)
        offsets[1:] = ends
        return offsets, self.octets[places].tobytes()
