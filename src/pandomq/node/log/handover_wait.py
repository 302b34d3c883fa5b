"""A broker that has handed over stays until its successor serves: the successor may need its vote, and its copy of the
first entries.

With two brokers the successor always needs them, and with three while one of them is down. A new root writes an entry
about its takeover (`node.transitions`) and serves once that is committed; so the first entry that is not the replica's
own shows this.

Even then the old root may be the only broker so far that has answered the new root: if it left at once, the new root
would lose its lease. So it stays half a lease longer, in which the others have answered as well if they are up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pandomq.replica.protocol.entries import is_own

HANDOVER_WAIT_MS: Final = 2_000
"""The longest time for which the old root waits. After it the old root leaves, even if the successor does not serve."""


class HandoverWait:
    __slots__ = ("_awaited_index", "_lease_ms", "_now_ms", "_until_ms", "over")

    def __init__(self, now_ms: int, lease_ms: int) -> None:
        self._now_ms = now_ms
        self._lease_ms = lease_ms
        self._until_ms = now_ms + HANDOVER_WAIT_MS
        self._awaited_index: int | None = None
        self.over = False

    def wrote(self, first_index: int, payloads: Sequence[bytes]) -> None:
        """To be called with entries that the next root has sent."""
        for index, payload in enumerate(payloads, first_index):
            if self._awaited_index is None and not is_own(payload):
                self._awaited_index = index

    def committed(self, index: int) -> None:
        if self._awaited_index is not None and index >= self._awaited_index:
            self._awaited_index = None
            self._until_ms = min(self._until_ms, self._now_ms + self._lease_ms // 2)

    def tick(self, now_ms: int, *, linked: bool) -> None:
        """`linked`: there is another broker to wait for."""
        self._now_ms = now_ms
        if now_ms >= self._until_ms or not linked:
            self.over = True
