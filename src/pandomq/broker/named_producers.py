"""What is remembered of publishers that name themselves and number their messages (D11): all that the log says of them.

Of each producer of a vhost: which numbers had their effect, which were refused and may come again, and whose it is, the
connection that first used the name last. Numbers are kept as ranges, so that a producer that leaves no gaps takes no
more room after a million messages than after one. It changes by commands only, and whatever is forgotten is named in
them: so it is the same on every broker, whatever their configurations say.

On the root it changes in the middle of a batch, before there is a command. What of it is new is in `fresh`, and
`settle` does with it, at the end of the batch, what other brokers do when they apply the command.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from enum import IntEnum, auto
from typing import Final

from pandomq.broker.commands import NoteSequences, SequenceNotes
from pandomq.limits import PRODUCER_CONNECTIONS_FENCED_MAX, PRODUCER_ODD_MAX, PRODUCER_RANGES_MAX

Row = tuple[str, str, int, list[int], list[int], dict[int, bool], int, int]
"""Of a snapshot: vhost, name, owner, fenced, accepted, odd, forgotten through, noted at."""

NOTHING: Final = -1
"""Below every number."""


class Verdict(IntEnum):
    """On a number that comes."""

    NEW = auto()
    REPEATED = auto()
    """It had its effect before."""
    IN_PART = auto()
    """Some queues took it, and another one refused it."""
    NEVER_SEEN = auto()
    """It is lower than others that came."""
    FORGOTTEN = auto()
    """So long ago that it is not known whether it came."""


class NamedProducer:
    __slots__ = (
        "accepted",
        "fenced",
        "forgotten",
        "forgotten_through",
        "fresh",
        "fresh_odd",
        "name",
        "noted_ms",
        "odd",
        "owner",
        "touched",
        "vhost",
    )

    def __init__(self, vhost: str, name: str) -> None:
        self.vhost = vhost
        self.name = name
        self.accepted: list[int] = []
        """Ranges of numbers that had their effect: first, last, first, last; rising, and never next to each other."""
        self.odd: dict[int, bool] = {}
        """Numbers that were refused: whether they may come again, since no queue took them."""
        self.owner = 0
        """The connection that may publish under this name."""
        self.fenced: list[int] = []
        """Connections that could before, the oldest first."""
        self.forgotten_through = NOTHING
        """Of numbers up to this one nothing is known."""
        self.noted_ms = 0
        self.forgotten = False
        """Who remembers this object should not."""
        self.touched = False
        """On the root: it is in the notes of this batch."""
        self.fresh: list[int] = []
        """The accepted numbers of this batch."""
        self.fresh_odd: dict[int, bool] = {}

    @property
    def last(self) -> int:
        """The highest number that had its effect; NOTHING if none had."""
        return self.accepted[-1] if self.accepted else self.forgotten_through

    def judge(self, number: int) -> Verdict:
        accepted = self.accepted
        if not accepted or number > accepted[-1]:
            return Verdict.NEW if number > self.forgotten_through else Verdict.FORGOTTEN
        again = self.odd.get(number)
        if again is not None:
            return Verdict.NEW if again else Verdict.IN_PART
        before = bisect_right(accepted, number)
        if before % 2 or (before and accepted[before - 1] == number):
            return Verdict.REPEATED
        return Verdict.NEVER_SEEN if number > self.forgotten_through else Verdict.FORGOTTEN

    # On the root, in a batch.

    def accept(self, number: int) -> None:
        add_range(self.accepted, number, number)
        add_range(self.fresh, number, number)
        if self.odd:
            self.odd.pop(number, None)
            self.fresh_odd.pop(number, None)

    def refuse(self, number: int, *, in_part: bool) -> None:
        """It may come again unless some queue took it."""
        if in_part:
            self.accept(number)
        self.odd[number] = self.fresh_odd[number] = not in_part

    def take_over(self, connection: int) -> None:
        if self.owner:
            self.fenced = [*self.fenced, self.owner][-PRODUCER_CONNECTIONS_FENCED_MAX:]
        self.owner = connection

    def copy(self) -> "NamedProducer":
        """For who wants to know what would be."""
        other = NamedProducer(self.vhost, self.name)
        other.accepted, other.odd = list(self.accepted), dict(self.odd)
        other.forgotten_through = self.forgotten_through
        return other

    def take_notes(self) -> SequenceNotes:
        """What this batch has changed."""
        again = [number for number, may_come in self.fresh_odd.items() if may_come]
        in_part = [number for number, may_come in self.fresh_odd.items() if not may_come]
        notes = SequenceNotes(self.vhost, self.name, self.owner, self.fresh, again, in_part)
        self.fresh, self.fresh_odd, self.touched = [], {}, False
        return notes

    # On every broker, at the end of a batch.

    def apply(self, notes: SequenceNotes) -> None:
        if notes.owner != self.owner:
            self.take_over(notes.owner)
        for first, last in zip(notes.accepted[::2], notes.accepted[1::2], strict=True):
            add_range(self.accepted, first, last)
            if self.odd:
                self.odd = {number: again for number, again in self.odd.items() if not first <= number <= last}
        self.odd.update(dict.fromkeys(notes.again, True))
        self.odd.update(dict.fromkeys(notes.in_part, False))

    def settle(self, now_ms: int) -> None:
        """No more than a bounded part of it is remembered."""
        self.noted_ms = now_ms
        if len(self.accepted) > 2 * PRODUCER_RANGES_MAX:
            del self.accepted[: -2 * PRODUCER_RANGES_MAX]
            self.forgotten_through = self.accepted[0] - 1
        if len(self.odd) > PRODUCER_ODD_MAX:
            self.forgotten_through = max(self.forgotten_through, sorted(self.odd)[-PRODUCER_ODD_MAX - 1])
        if self.odd and min(self.odd) <= self.forgotten_through:
            self.odd = {number: again for number, again in self.odd.items() if number > self.forgotten_through}


class NamedProducers:
    """In the order in which something was last noted of them."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: OrderedDict[tuple[str, str], NamedProducer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[NamedProducer]:
        return iter(self._rows.values())

    def find(self, vhost: str, name: str) -> NamedProducer | None:
        return self._rows.get((vhost, name))

    def make(self, vhost: str, name: str) -> NamedProducer:
        producer = self._rows[vhost, name] = NamedProducer(vhost, name)
        return producer

    def settle(self, producer: NamedProducer, now_ms: int) -> None:
        producer.settle(now_ms)
        self._rows.move_to_end((producer.vhost, producer.name))

    def first(self) -> NamedProducer:
        """Of which nothing was noted for the longest time."""
        return next(iter(self._rows.values()))

    def forget(self, vhost: str, name: str) -> None:
        self._rows.pop((vhost, name)).forgotten = True

    def forget_vhost(self, vhost: str) -> None:
        for producer in [producer for producer in self if producer.vhost == vhost]:
            self.forget(producer.vhost, producer.name)

    def apply(self, command: NoteSequences) -> None:
        for notes in command.notes:
            producer = self.find(notes.vhost, notes.name) or self.make(notes.vhost, notes.name)
            producer.apply(notes)
            self.settle(producer, command.now_ms)
        for vhost, name in command.forgotten:
            self.forget(vhost, name)

    def rows(self) -> list[Row]:
        """In order, so that `reinstate` of each makes the same table."""
        return [
            (
                producer.vhost,
                producer.name,
                producer.owner,
                list(producer.fenced),
                list(producer.accepted),
                dict(producer.odd),
                producer.forgotten_through,
                producer.noted_ms,
            )
            for producer in self
        ]

    def reinstate(self, row: Row) -> None:
        producer = self.make(row[0], row[1])
        producer.owner, producer.fenced, producer.accepted, producer.odd = row[2], row[3], row[4], row[5]
        producer.forgotten_through, producer.noted_ms = row[6], row[7]


def add_range(ranges: list[int], first: int, last: int) -> None:
    if not ranges or first > ranges[-1] + 1:
        ranges += (first, last)
        return
    if first == ranges[-1] + 1:
        ranges[-1] = last
        return
    pairs = sorted([*zip(ranges[::2], ranges[1::2], strict=True), (first, last)])
    ranges.clear()
    for start, end in pairs:
        if ranges and start <= ranges[-1] + 1:
            ranges[-1] = max(ranges[-1], end)
        else:
            ranges += (start, end)
