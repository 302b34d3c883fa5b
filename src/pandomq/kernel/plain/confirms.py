"""When the publishes of a channel in confirm mode are confirmed.

Publishes are numbered. Those of a batch fall into two parts: up to the first one that was logged they depend on nothing
in the batch, from it on they wait for the batch's log entry. The same holds after an ack was logged, since a confirm
that follows proves it, and after a reply that waits, since what is said on a channel keeps its order. So each batch
adds at most two steps (number, index): confirm up to this number once this index is committed. Steps go out in order.
"""

import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import ACK, BASIC, CONFIRM, FRAME_END, METHOD, NACK

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel

SETTLEMENT_FRAME: Final = struct.Struct(">BHIHHQBB")


class Confirms:
    """Numbers up to `settled` were confirmed or refused on the wire."""

    __slots__ = ("_channel", "_depends_from", "_refused", "_steps", "last_index", "planned", "published", "settled")

    def __init__(self, channel: "Channel") -> None:
        self._channel = channel
        self.published = 0
        self.planned = 0  # numbers up to this one are in steps or settled
        self.settled = 0
        self.last_index = 0  # the latest entry that holds something of this channel
        self._depends_from = 0  # the first number that waits for this batch's entry; 0 if none does
        self._refused: deque[int] = deque()
        self._steps: deque[tuple[int, int]] = deque()

    def depend_on_batch(self, number: int) -> None:
        """Publishes from this number on wait for the batch's entry."""
        if not self._depends_from:
            self._depends_from = number

    def refuse(self) -> None:
        if self.published > self.planned and (not self._refused or self._refused[-1] != self.published):
            self._refused.append(self.published)

    def sealed(self, index: int) -> None:
        """The batch ended; this is its entry's index, or the last one before it if it has none."""
        free = self._depends_from - 1 if self._depends_from else self.published
        self._plan(free)
        if self._depends_from:
            self._depends_from = 0
            self._depend_on(index)
            self._plan(self.published)

    def _depend_on(self, index: int) -> None:
        if index > self.last_index:
            self.last_index = index
            engine = self._channel.session.engine
            if index > engine.commit_index:
                engine.confirms_waiting.append((index, self._channel))

    def _plan(self, number: int) -> None:
        # Numbers up to this one may go out with the latest entry that the channel depends on.
        if number <= self.planned:
            return
        self.planned = number
        if not self._steps and self.last_index <= self._channel.session.engine.commit_index:
            self._settle(number)
            return
        if self._steps and self._steps[-1][1] == self.last_index:
            self._steps.pop()
        self._steps.append((number, self.last_index))

    def committed(self, index: int) -> None:
        number = 0
        while self._steps and self._steps[0][1] <= index:
            number = self._steps.popleft()[0]
        if number:
            self._settle(number)

    def _settle(self, number: int) -> None:
        confirmed = self.settled
        while self._refused and self._refused[0] <= number:
            refused = self._refused.popleft()
            self._acknowledge(confirmed, refused - 1)
            self._write(NACK, refused, False)
            confirmed = refused
        self._acknowledge(confirmed, number)
        self.settled = number

    def _acknowledge(self, after: int, number: int) -> None:
        if number > after:
            self._channel.session.engine.confirmed += number - after
            self._write(ACK, number, number - after > 1)

    def _write(self, method_id: int, number: int, multiple: bool) -> None:
        channel = self._channel
        if channel.open and channel.mode == CONFIRM:
            frame = SETTLEMENT_FRAME.pack(METHOD, channel.number, 13, BASIC, method_id, number, multiple, FRAME_END)
            channel.session.write(frame)

    def check(self) -> None:
        assert self.settled <= self.planned <= self.published
        numbers, indexes = [number for number, _ in self._steps], [index for _, index in self._steps]
        assert numbers == sorted(set(numbers))
        assert indexes == sorted(set(indexes))
        assert not numbers or numbers[-1] == self.planned
        assert numbers or self.settled == self.planned
        assert list(self._refused) == sorted(set(self._refused))
