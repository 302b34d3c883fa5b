"""Who has handed over stays until the next one is in office: that may need its vote, and its copy of what comes first.

With two brokers it always does, and with three while one of them is away. Whoever takes over writes an entry about it
(`DiskLog.take_office`) and serves once that is committed; so the first entry that is not the replica's own tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandomq.replica.entries import is_own

LINGER_MS: Final = 2_000
"""If it takes longer, it is left to itself."""


class Lingering:
    __slots__ = ("_awaited_index", "_until_ms", "over")

    def __init__(self, now_ms: int) -> None:
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
            self.over = True

    def tick(self, now_ms: int, *, linked: bool) -> None:
        """`linked`: somebody is there to wait for."""
        if now_ms >= self._until_ms or not linked:
            self.over = True
