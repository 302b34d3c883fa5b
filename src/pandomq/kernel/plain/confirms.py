"""When the publishes of a channel in confirm mode are confirmed.

Publishes are numbered. The publishes of a batch fall into two parts: those before the first logged one depend on
nothing in the batch; the others wait for the batch's log entry. The same holds after an ack was logged, since a later
confirm proves the ack, and after a reply that waits, since everything that is sent on a channel keeps its order. So
each batch adds at most two steps (number, index): confirm up to this number once this index is committed. Steps go out
in order. A publish that entered an outlet also waits until everything that its batch put there has come out at the
other end: so a step has the number of a batch, too. Publishes that need no commit may overtake the steps (early.py),
but `multiple` never covers a number that still waits.
"""

import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import ACK, BASIC, CONFIRM, FRAME_END, METHOD, NACK
from pandomq.kernel.plain.early import Early
from pandomq.kernel.plain.trace import settle_traced

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel

SETTLEMENT_FRAME: Final = struct.Struct(">BHIHHQBB")


class Confirms:
    """Numbers up to `settled` were confirmed or refused on the wire."""

    __slots__ = (
        "_awaits_receipt",
        "_channel",
        "_depends_from",
        "_held_from",
        "_refused",
        "_steps",
        "early",
        "last_batch",
        "last_index",
        "planned",
        "published",
        "settled",
    )

    def __init__(self, channel: "Channel") -> None:
        self._channel = channel
        self.published = 0
        self.planned = 0  # numbers up to this one are in steps or settled
        self.settled = 0
        self.last_index = 0  # the latest entry that holds something of this channel
        self.last_batch = 0  # the latest batch in which it had something for outlets
        self._awaits_receipt = False  # this batch has publishes that await receipt
        self._depends_from = 0  # the first number that waits for this batch's entry; 0 if none does
        self._held_from = 0  # numbers from this one on wait for the next call of `hold`; 0 if none does
        self._refused: deque[int] = deque()
        self._steps: deque[tuple[int, int, int]] = deque()
        self.early = Early()

    def begin_after(self, number: int) -> None:
        """Sets the number of the last publish; the next one follows it."""
        if self.settled != self.published:
            raise ValueError("there are publishes that were not confirmed")
        self.published = self.planned = self.settled = number

    def depend_on_batch(self, number: int) -> None:
        """Publishes from this number on wait for the batch's entry."""
        if not self._depends_from:
            self._depends_from = number

    def hold(self, number: int) -> None:
        self._held_from = number
        self.committed(self._channel.session.engine.commit_index)

    def await_receipt(self) -> None:
        """The last publish so far is in an outlet."""
        self.depend_on_batch(self.published)
        self._awaits_receipt = True
        if self._channel.session.engine.replicated:
            self.early.needs_commit(self.published)

    def refuse(self) -> None:
        if self.published > self.planned and (not self._refused or self._refused[-1] != self.published):
            self._refused.append(self.published)
            if self._channel.session.engine.replicated:
                self.early.needs_commit(self.published)

    @property
    def awaits_seal(self) -> bool:
        """The batch has publishes to confirm; otherwise it may have acks, which only later confirms wait for."""
        return self.published > self.planned

    def sealed(self, index: int) -> None:
        """The batch ended; `index` is its entry's index, or the last one before it if it has none."""
        engine = self._channel.session.engine
        planned = self.planned
        free = self._depends_from - 1 if self._depends_from else self.published
        self._plan(free)
        if self._depends_from:
            self._depends_from = 0
            self._depend_on(index)
            if self._awaits_receipt:
                self._awaits_receipt = False
                self.last_batch = engine.batch
                engine.outlets_waiting.append((engine.batch, self._channel))
            self._plan(self.published)
        if engine.replicated:
            after = max(planned, self.settled)
            held = 0 < self._held_from <= planned + 1
            if self.early.sealed(after, self.published, index, engine.commit_index, held=held):
                engine.await_receipt(index, self._channel)

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
        engine, wanted = self._channel.session.engine, (self.last_index, self.last_batch)
        if (
            not self._steps
            and not self._is_held(number)
            and wanted[0] <= engine.commit_index
            and wanted[1] <= engine.outlets_batch
        ):
            self._settle(number)
            return
        if self._steps and self._steps[-1][1:] == wanted:
            self._steps.pop()
        self._steps.append((number, *wanted))

    def committed(self, index: int) -> None:
        number, batch = 0, self._channel.session.engine.outlets_batch
        while self._steps and self._steps[0][1] <= index and self._steps[0][2] <= batch:
            if self._is_held(self._steps[0][0]):
                number = self._held_from - 1
                break
            number = self._steps.popleft()[0]
        if number > self.settled:
            self._settle(number)

    def _is_held(self, number: int) -> bool:
        return 0 < self._held_from <= number

    def received(self, index: int) -> None:
        """Enough brokers have the entries up to this one in memory."""
        while (ready := self.early.received(index)) is not None:
            first, last = max(ready.first, self.settled + 1), ready.last
            if first == self.settled + 1 and last >= first:
                self._acknowledge(self.settled, last)
                self._settled_up_to(last)
            elif last >= first:
                self._channel.session.engine.confirmed += last - first + 1
                if self._channel.traced:
                    settle_traced(self._channel, first, last, confirmed=True)
                for number in range(first, last + 1):
                    self.write(ACK, number, False)
                self.early.went_ahead(first, last)

    def _settle(self, number: int) -> None:
        confirmed = self.settled
        while self._refused and self._refused[0] <= number:
            refused = self._refused.popleft()
            self._acknowledge(confirmed, refused - 1)
            if self._channel.traced:
                settle_traced(self._channel, refused, refused, confirmed=False)
            self.write(NACK, refused, False)
            confirmed = refused
        self._acknowledge(confirmed, number)
        self._settled_up_to(number)

    def _settled_up_to(self, number: int) -> None:
        self.settled = self.early.settled(number)
        while self._steps and self._steps[0][0] <= self.settled:
            self._steps.popleft()

    def _acknowledge(self, after: int, number: int) -> None:
        count, last = self.early.left_of(after, number)
        if count > 0:
            self._channel.session.engine.confirmed += count
            if self._channel.traced:
                settle_traced(self._channel, after + 1, number, confirmed=True)
            self.write(ACK, last, count > 1)

    def write(self, method_id: int, number: int, multiple: bool) -> None:
        channel = self._channel
        if channel.open and channel.mode == CONFIRM:
            frame = SETTLEMENT_FRAME.pack(METHOD, channel.number, 13, BASIC, method_id, number, multiple, FRAME_END)
            channel.session.write(frame)

    def check(self) -> None:
        assert self.settled <= self.planned <= self.published
        numbers, wanted = [number for number, _, _ in self._steps], [step[1:] for step in self._steps]
        assert numbers == sorted(set(numbers))
        assert wanted == sorted(set(wanted))
        assert [batch for _, batch in wanted] == sorted(batch for _, batch in wanted)
        assert not numbers or numbers[-1] == self.planned
        assert numbers or self.settled == self.planned
        assert list(self._refused) == sorted(set(self._refused))
        assert not numbers or numbers[0] > self.settled
        self.early.check(self.settled, self.published)
