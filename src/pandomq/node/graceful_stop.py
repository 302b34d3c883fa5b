"""A root that is to stop hands over to another broker, if one can take over in time.

It repeats a refused hand-over, because a backup may be in sync a moment later. Once it has handed over it waits until
the next root serves (`HandoverWait`), and then its node ends by itself. A broker that is not root, or has no possible
successor, is done at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.node.broker_state import BrokerState

if TYPE_CHECKING:
    from pandomq.node.log.alone import Alone
    from pandomq.node.log.replication import Replication

HAND_OVER_MS_MAX: Final = 3_000
"""How long the hand-over is tried."""
AGAIN_MS: Final = 50
"""The wait after a refusal."""


class GracefulStop:
    __slots__ = ("_asked", "_begun", "_deadline_ms", "_next_ms", "_now_ms", "_replication")

    def __init__(self, replication: Replication | Alone) -> None:
        self._replication = replication
        self._now_ms = self._next_ms = self._deadline_ms = 0
        self._begun = self._asked = False

    def begin(self) -> None:
        """A step of the node has to follow. Then either this node ends, or it is `over`."""
        self._begun = True
        self._deadline_ms = self._now_ms + HAND_OVER_MS_MAX
        self.tick(self._now_ms)

    def tick(self, monotonic_ms: int) -> None:
        self._now_ms = monotonic_ms
        if self._begun and not self._asked and monotonic_ms >= self._next_ms and self._may_hand_over():
            self._asked = True
            self._replication.hand_over(None, self._ended)

    def _ended(self, done: bool, text: str) -> None:
        self._asked = False
        self._next_ms = self._now_ms + AGAIN_MS

    @property
    def over(self) -> bool:
        """It keeps its role until it stops."""
        return self._begun and not self._goes() and not self._may_hand_over()

    def _goes(self) -> bool:
        """It has handed over: this node ends soon."""
        return self._replication.life.state in (BrokerState.HANDED_OVER, BrokerState.RESTARTING)

    def _may_hand_over(self) -> bool:
        replication = self._replication
        if self._goes() or self._now_ms >= self._deadline_ms:
            return False
        return replication.life.took_over and replication.replicated and bool(replication.linked)
