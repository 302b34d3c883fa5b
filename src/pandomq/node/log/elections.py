"""Records which roots this broker has followed, and how long it knew none. The record outlives a node that restarts."""

from __future__ import annotations

from collections import deque
from typing import Final

from pandomq.node.views.records import ElectionView

ELECTIONS_KEPT: Final = 32


class Elections:
    __slots__ = ("_missing_since_ms", "count", "kept")

    def __init__(self) -> None:
        self.kept: deque[ElectionView] = deque(maxlen=ELECTIONS_KEPT)
        """The newest is the last."""
        self.count = 0
        self._missing_since_ms: int | None = None

    def heard(self, root: str | None, term: int, now_ms: int) -> None:
        if root is None:
            self._missing_since_ms = now_ms if self._missing_since_ms is None else self._missing_since_ms
            return
        # A restarted node learns of the same root once more.
        if not self.kept or (self.kept[-1].term, self.kept[-1].root) != (term, root):
            missing_ms = 0 if self._missing_since_ms is None else max(0, now_ms - self._missing_since_ms)
            self.count += 1
            self.kept.append(ElectionView(now_ms, term, root, missing_ms))
        self._missing_since_ms = None
