"""The root's state of another broker: how much of the log it has, and what is being sent to it.

PROBING      the root searches the end of the common log, one append at a time
STREAMING    appends follow each other without waiting, within a window
SNAPSHOT     the next entry is no longer in the log
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Final, NamedTuple

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.limits import (
    IN_FLIGHT_APPENDS_MAX,
    IN_FLIGHT_BYTES_MAX,
    SNAPSHOT_PIECES_IN_FLIGHT_MAX,
    WINDOW_BYTES_FIRST,
    WINDOW_BYTES_MIN,
)

PIECE_SHARE_BYTES: Final = IN_FLIGHT_BYTES_MAX // SNAPSHOT_PIECES_IN_FLIGHT_MAX
"""The share of the window that one piece of a snapshot uses."""


class ProgressState(enum.Enum):
    PROBING = "probing"
    STREAMING = "streaming"
    SNAPSHOT = "snapshot"


class InFlight(NamedTuple):
    last_index: LogIndex
    size_bytes: int
    round: int


class SnapshotTransfer:
    """A snapshot that is being sent."""

    __slots__ = ("index", "next_number", "progress_ms", "raw_to", "reading", "source", "taken", "whole")

    def __init__(self, now_ms: int) -> None:
        self.source = ""
        self.index = LogIndex(0)
        self.next_number = 0
        """The piece to be read and sent next."""
        self.taken = 0
        """Pieces that the peer has stored."""
        self.reading = False
        self.whole = False
        """The last piece was sent."""
        self.progress_ms = now_ms
        self.raw_to = 0
        """Pieces before this one are sent in full, whatever the peer may have."""

    @property
    def under_way(self) -> int:
        return max(self.next_number - self.taken, 0)

    def rewind(self, number: int) -> None:
        self.next_number = number
        self.whole = False


class Progress:
    __slots__ = (
        "_in_flight",
        "_in_flight_bytes",
        "fetching",
        "heard_ms",
        "in_sync",
        "joining",
        "life",
        "name",
        "next_index",
        "observer",
        "past_life",
        "phase",
        "received_index",
        "round",
        "synced_index",
        "told_index",
        "transfer",
        "waiting",
        "welcome_index",
        "window_bytes",
        "window_ms",
    )

    def __init__(self, name: NodeName, next_index: LogIndex, *, observer: bool = False) -> None:
        self.name = name
        self.observer = observer
        self.life: int | None = None
        self.past_life: int | None = None
        """The earlier run of the broker: its late messages are ignored."""
        self.joining = False
        self.welcome_index: LogIndex | None = None
        self.next_index = next_index
        self.received_index = LogIndex(0)
        self.synced_index = LogIndex(0)
        self.told_index = LogIndex(0)
        """The last commit index that was sent to it."""
        self.heard_ms = -1
        self.round = -1
        """The send time of the newest append that it has answered: its part of the lease begins there."""
        self.in_sync = False
        self.phase = ProgressState.PROBING
        self.waiting = False
        """While probing: for the answer to an append."""
        self.fetching = False
        self.transfer: SnapshotTransfer | None = None
        self._in_flight: deque[InFlight] = deque()
        self._in_flight_bytes = 0
        self.window_bytes = WINDOW_BYTES_FIRST
        """Maximum bytes on their way to it."""
        self.window_ms = 0
        """The time at which the window was last adjusted."""

    def begins_life(self, life: int, last_index: LogIndex, *, joining: bool) -> None:
        """If it restarted, or has lost its store, its earlier acknowledgements are void: even synced data may be
        damaged. The search for its log's end begins at the end of ours."""
        is_new = self.life is not None and self.life != life
        if is_new or (joining and not self.joining):
            self.synced_index = LogIndex(0)
            self.probe(LogIndex(last_index + 1))
            self.round = -1
            self.welcome_index = None
        if is_new:
            self.past_life = self.life
        self.life = life
        self.joining = joining

    def probe(self, next_index: LogIndex) -> None:
        """Everything that was sent may be lost; only synced entries are known to be there."""
        self.received_index = self.synced_index
        self.next_index = next_index
        self.phase = ProgressState.PROBING
        self.waiting = self.fetching = self.in_sync = False
        self.transfer = None
        self._in_flight.clear()
        self._in_flight_bytes = 0

    @property
    def has_room(self) -> bool:
        if self.phase is ProgressState.PROBING:
            return not self.waiting
        return len(self._in_flight) < IN_FLIGHT_APPENDS_MAX and self._in_flight_bytes < self.window_bytes

    def has_room_for_piece(self, transfer: SnapshotTransfer) -> bool:
        """One piece is read at a time, and a few may be on their way."""
        if transfer.reading or transfer.whole:
            return False
        return transfer.under_way < max(1, self.window_bytes // PIECE_SHARE_BYTES)

    @property
    def _under_way_bytes(self) -> int:
        pieces = 0 if self.transfer is None else self.transfer.under_way
        return self._in_flight_bytes + pieces * PIECE_SHARE_BYTES

    def answered(self, round_: int, now_ms: int, delay_ms_max: int) -> None:
        """The peer has answered at once a message of that time. Heartbeats queue behind entries: if those take long on
        a slow link, fewer of them may be under way, or the lease would run out only because the root sends too much.
        Messages from before the last change of the window do not count."""
        if round_ <= self.window_ms:
            return
        self.window_ms = now_ms
        if now_ms - round_ > delay_ms_max:
            self.window_bytes = max(self.window_bytes // 2, WINDOW_BYTES_MIN)
        elif self._under_way_bytes * 2 >= self.window_bytes:
            # Only if the window is used: an idle link shows nothing about its capacity.
            self.window_bytes = min(self.window_bytes * 2, IN_FLIGHT_BYTES_MAX)

    def sent(self, last_index: LogIndex, size_bytes: int, round_: int) -> None:
        if self.phase is ProgressState.PROBING:
            self.waiting = True
            return
        self.next_index = LogIndex(last_index + 1)
        self._in_flight.append(InFlight(last_index, size_bytes, round_))
        self._in_flight_bytes += size_bytes

    def acknowledged(self, received_index: LogIndex, synced_index: LogIndex, round_: int) -> None:
        self.received_index = max(self.received_index, received_index)
        self.synced_index = max(self.synced_index, synced_index)
        self.waiting = False
        while self._in_flight and self._in_flight[0].last_index <= self.received_index:
            self._in_flight_bytes -= self._in_flight.popleft().size_bytes
        if self.phase is not ProgressState.STREAMING:
            # A common entry before that does not help a peer that needs a snapshot for the next entry.
            wanted_index = self.next_index if self.phase is ProgressState.SNAPSHOT else self.next_index - 1
            if self.received_index >= wanted_index:
                self.phase = ProgressState.STREAMING
                self.transfer = None
                self.next_index = LogIndex(self.received_index + 1)
        elif self._in_flight and self._in_flight[0].round < round_:
            # The peer has answered a message that was sent later, so the earlier message is lost.
            self.probe_from_received()
        self.next_index = max(self.next_index, LogIndex(self.received_index + 1))

    def probe_from_received(self) -> None:
        received_index = self.received_index
        in_sync = self.in_sync
        self.probe(LogIndex(received_index + 1))
        self.received_index = received_index
        self.in_sync = in_sync
