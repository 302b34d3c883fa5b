"""Heartbeats, for both ends of a connection.

Ticks come four times in an interval (`next_beat_ms`). Traffic only sets a flag; the next tick dates it, each
time to the broker's disadvantage:

- Octets written since the last tick may have been sent right after that tick, and get its time. A heartbeat follows
  half an interval later: some clients wait for one interval and no longer.
- Octets received since the last tick get the time of this one, and the peer has two whole intervals from then on.

A late tick proves nothing: the process did not run in between, or its clock was set forward, and octets of the peer
may wait in the socket. So only silence between punctual ticks counts, and only up to the last tick before this one:
everything that had arrived by then has been read in between.
"""

from enum import Enum, auto
from typing import Final

from pandomq.limits import HEARTBEATS_MISSED_MAX

NEVER_MS: Final = 2**63 - 1
"""The next tick of a connection that needs none."""


class Tick(Enum):
    """The action that a tick requires."""

    NOTHING = auto()
    SEND = auto()
    """A heartbeat is due."""
    DROP = auto()
    """The peer is gone or will not answer: close the socket without another frame."""


class Pulse:
    __slots__ = ("_heard", "_heard_ms", "_ticked_ms", "_wrote", "_wrote_ms")

    def _begin_pulse(self, now_ms: int) -> None:
        self._heard = self._wrote = False
        self._heard_ms = self._wrote_ms = self._ticked_ms = now_ms

    def wrote(self) -> None:
        """Octets were written: no heartbeat is needed for a while."""
        self._wrote = True

    def excuse(self) -> None:
        """The broker deliberately does not read the peer's octets: its silence means nothing."""
        self._heard = True

    def silent_ms(self, now_ms: int) -> int:
        """The time since the last received octets, as far as it is known."""
        return 0 if self._heard else now_ms - self._heard_ms

    def _beat(self, heartbeat_s: int, now_ms: int) -> Tick:
        step_ms = _step_ms(heartbeat_s)
        last_ms, self._ticked_ms = self._ticked_ms, now_ms
        if self._wrote:
            self._wrote, self._wrote_ms = False, last_ms
        if not step_ms:
            return Tick.NOTHING
        late_ms = now_ms - last_ms - step_ms
        if self._heard:
            self._heard, self._heard_ms = False, now_ms
        elif late_ms > step_ms:
            self._heard_ms += late_ms
        if last_ms - self._heard_ms >= 4 * step_ms * HEARTBEATS_MISSED_MAX:
            return Tick.DROP
        # Send a heartbeat now if half an interval will have passed by the next tick. Ticks are not exact: a heartbeat
        # that is due at the next one, to within an eighth of a step, is not sent now, since that would be twice as
        # often.
        if now_ms + step_ms - self._wrote_ms > 2 * step_ms + step_ms // 8:
            self._wrote_ms = now_ms
            return Tick.SEND
        return Tick.NOTHING


def next_beat_ms(heartbeat_s: int, now_ms: int, due_ms: int | None = None) -> int:
    """The time at which the next tick is due, if this one was due at `due_ms`: a slightly late tick does not delay the
    next one."""
    if not heartbeat_s:
        return NEVER_MS
    step_ms = _step_ms(heartbeat_s)
    if due_ms is not None and now_ms - 2 * step_ms < due_ms < now_ms:
        return due_ms + step_ms
    return now_ms + step_ms


def _step_ms(heartbeat_s: int) -> int:
    return heartbeat_s * 250
