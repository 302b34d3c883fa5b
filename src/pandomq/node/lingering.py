"""Who has handed over stays until the next one is in office: that may need its vote, and its copy of what comes first.

With two brokers it always does, and with three while one of them is away. Whoever takes over writes an entry about it
(`DiskLog.take_office`) and serves once that is committed; so the first entry that is not the replica's own tells.

Even then it may be the only one so far that the next root has heard from: who leaves at once would cost it its lease.
So it stays half a lease longer, in which the others have answered as well if they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandomq.replica.entries import is_own

LINGER_MS: Final = 2_000
"""If it takes longer, it is left to itself."""


class Lingering:
    __slots__ = ("_awaited_index", "_lease_ms", "_now_ms", "_until_ms", "over")

    def __init__(self, now_ms: int, lease_ms: int) -> None:
        self._now_ms = now_ms
        self._lease_ms = lease_ms
        self._until_ms = now_ms + LINGER_MS
        self._awaited_index: int | None = None
        self.over = False

    def wrote(self, first_index: int, payloads: Sequence[bytes]) -> None:
        """These entries came from the next root."""
        for index, payload in enumerate(payloads, first_index):
            if self._awaited_index is None and not is_own(payload):
                self._awaited_index = index

    def committed(self, index: int) -> None:
        if self._awaited_index is not None and index >= self._awaited_index:
            self._awaited_index = None
            self._until_ms = min(self._until_ms, self._now_ms + self._lease_ms // 2)

    def tick(self, now_ms: int, *, linked: bool) -> None:
        """`linked`: somebody is there to wait for."""
        self._now_ms = now_ms
        if now_ms >= self._until_ms or not linked:
            self.over = True
