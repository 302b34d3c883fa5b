"""Heartbeats, as both ends of a connection keep them.

Traffic is only noted when it passes, and dated by the first tick after it: late by less than one tick, which the
peer's patience covers.
"""

from enum import Enum, auto
from typing import Final

from pandomq.limits import HEARTBEATS_MISSED_MAX

NEVER_MS: Final = 2**63 - 1
"""When to look again at who needs no watching."""


class Tick(Enum):
    """What a tick asks for."""

    NOTHING = auto()
    SEND = auto()
    """A heartbeat is due."""
    DROP = auto()
    """The peer is gone or will not answer: hang up without another word."""


class Pulse:
    __slots__ = ("_heard", "_heard_ms", "_wrote", "_wrote_ms")

    def _begin_pulse(self, now_ms: int) -> None:
        self._heard = self._wrote = False
        self._heard_ms = self._wrote_ms = now_ms

    def wrote(self) -> None:
        """Octets were written: no heartbeat is needed for a while."""
        self._wrote = True

    def excuse(self) -> None:
        """The peer's octets are left unread on purpose: its silence means nothing."""
        self._heard = True

    def silent_ms(self, now_ms: int) -> int:
        """For how long nothing was heard, as far as is known."""
        return 0 if self._heard else now_ms - self._heard_ms

    def _beat(self, heartbeat_s: int, now_ms: int) -> Tick:
        if self._heard:
            self._heard, self._heard_ms = False, now_ms
        if self._wrote:
            self._wrote, self._wrote_ms = False, now_ms
        interval_ms = heartbeat_s * 1000
        if not interval_ms:
            return Tick.NOTHING
        if now_ms - self._heard_ms >= interval_ms * HEARTBEATS_MISSED_MAX:
            return Tick.DROP
        if now_ms - self._wrote_ms >= interval_ms // 2:
            self._wrote_ms = now_ms
            return Tick.SEND
        return Tick.NOTHING


def next_beat_ms(heartbeat_s: int, now_ms: int) -> int:
    return now_ms + heartbeat_s * 500 if heartbeat_s else NEVER_MS
