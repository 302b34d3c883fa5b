"""A root that is to stop sees to it that another has its office, if one can have it in time.

It asks for a hand-over again as long as that is refused: that nobody is in sync may be over in a moment. Once it has
handed over it lingers until the next one is in office (`Replication.lingering`), and then its life ends by itself. Who
is no root, or has no heirs, is done at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.node.replication import Replication

RETIRING_MS_MAX: Final = 3_000
"""How long it is tried."""
AGAIN_MS: Final = 50
"""After a refusal."""


class Retirement:
    __slots__ = ("_asked", "_begun", "_deadline_ms", "_next_ms", "_now_ms", "_replication")

    def __init__(self, replication: Replication | None) -> None:
        """Without a log on disk there are no other brokers."""
        self._replication = replication
        self._now_ms = self._next_ms = self._deadline_ms = 0
        self._begun = self._asked = False

    def begin(self) -> None:
        """Wants a step. Then either this life of the broker ends, or it is `over`."""
        self._begun = True
        self._deadline_ms = self._now_ms + RETIRING_MS_MAX
        self.tick(self._now_ms)

    def tick(self, monotonic_ms: int) -> None:
        self._now_ms = monotonic_ms
        if self._begun and not self._asked and monotonic_ms >= self._next_ms and self._may_hand_over():
            self._asked = True
            assert self._replication is not None
            self._replication.hand_over(None, self._ended)

    def _ended(self, done: bool, text: str) -> None:
        self._asked = False
        self._next_ms = self._now_ms + AGAIN_MS

    @property
    def over(self) -> bool:
        """It stays what it is until it stops."""
        return self._begun and not self._goes() and not self._may_hand_over()

    def _goes(self) -> bool:
        """It has handed over: this life ends soon."""
        replication = self._replication
        return replication is not None and (replication.lingering is not None or replication.restart is not None)

    def _may_hand_over(self) -> bool:
        replication = self._replication
        if replication is None or self._goes() or self._now_ms >= self._deadline_ms:
            return False
        return replication.in_office and replication.replicated and bool(replication.linked)
