"""What became of every message, from the clients' last words and from what is in the lake.

Every message has a number, so that none can hide; every private queue has a line, so that no deaf subscriber can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.demo.counters import Counters
from tools.demo.words import QUEUES, Copy, Heard, Published, Read, Seen


@dataclass(frozen=True)
class Archived:
    """What is in the lake of the stream's messages."""

    rows: int
    out_of_order: int
    """Offsets that are there twice, or not at all."""
    times: dict[Copy, bytes]


@dataclass(frozen=True)
class Subscription:
    """A private queue's line in the account."""

    broker: str
    whole: bool
    wanted: int
    """Confirmed, and published while the queue was there."""
    once: int
    doubled: int
    unheard: int
    """Of those that were wanted; of a queue that was lost with its broker nobody knows."""


@dataclass
class Account:
    counters: Counters = field(default_factory=Counters)
    published: dict[int, Published] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    """Of each private queue. Subscribers want every third message: those of the first queue's key."""
    read: list[Read] = field(default_factory=list)
    archived: Archived | None = None
    """None if nothing was to be archived."""
    subscribed: int = 0
    """Private queues that there have been."""
    listened: int = 0
    """Processes whose subscribers have all reported."""

    @property
    def sent(self) -> int:
        return sum(report.count for report in self.published.values())

    @property
    def confirmed(self) -> int:
        return self.sent - sum(len(report.unconfirmed) for report in self.published.values())

    @property
    def lost(self) -> int:
        """Confirmed, but never delivered to anybody."""
        return self._missing([seen.times for seen in self.seen])

    def _missing(self, found: Iterable[dict[Copy, bytes]]) -> int:
        """How many of those that were confirmed are nowhere there."""
        missing = 0
        everywhere = list(found)
        for publisher, report in self.published.items():
            arrived = bytearray(report.count)
            for copies in (times for place in everywhere for copy, times in place.items() if copy[0] == publisher):
                for number, times in enumerate(copies[: report.count]):
                    arrived[number] |= bool(times)
            doubtful = set(report.unconfirmed)
            missing += sum(not came and number not in doubtful for number, came in enumerate(arrived))
        return missing

    @property
    def again(self) -> int:
        """Published once more by a publisher that could not know: no redelivery, and no broker's fault."""
        return sum(report.again for report in self.published.values())

    @property
    def redelivered(self) -> int:
        """Deliveries of what had been delivered before."""
        return sum(max(0, times - 1) for numbers in self._together("times").values() for times in numbers)

    @property
    def unmarked(self) -> int:
        """Redeliveries that did not say so."""
        return sum(max(0, times - 1) for numbers in self._together("unmarked").values() for times in numbers)

    def _together(self, what: str) -> dict[Copy, list[int]]:
        """The same copy of a message may have come to several consumers."""
        together: dict[Copy, list[int]] = {}
        for seen in self.seen:
            for copy, numbers in getattr(seen, what).items():
                sums = together.setdefault(copy, [])
                sums.extend([0] * (len(numbers) - len(sums)))
                for number, times in enumerate(numbers):
                    sums[number] += times
        return together

    def subscriptions(self) -> list[Subscription]:
        """A line for each private queue, those that heard nothing as well."""
        return [self._line_of(heard) for heard in self.heard]

    def _line_of(self, heard: Heard) -> Subscription:
        wanted = unheard = 0
        for publisher, report in self.published.items():
            doubtful = set(report.unconfirmed)
            to_hear = {
                number
                for number in range(0, report.count, len(QUEUES))
                if report.times[number] > heard.since and number not in doubtful
            }
            copies = [times for copy, times in heard.times.items() if copy[0] == publisher]
            came = {number for times in copies for number, often in enumerate(times) if often}
            wanted += len(to_hear)
            unheard += len(to_hear - came)
        return Subscription(
            heard.broker,
            heard.whole,
            wanted,
            sum(times.count(1) for times in heard.times.values()),
            sum(max(0, times - 1) for numbers in heard.times.values() for times in numbers),
            unheard if heard.whole else 0,
        )

    @property
    def once(self) -> int:
        """Messages that came to a subscriber exactly once."""
        return sum(line.once for line in self.subscriptions())

    @property
    def doubled(self) -> int:
        """Copies too many at a subscriber."""
        return sum(line.doubled for line in self.subscriptions())

    @property
    def unheard(self) -> int:
        """Confirmed, but not heard by a subscriber that was there from before it was published until the end."""
        return sum(line.unheard for line in self.subscriptions())

    @property
    def unread(self) -> int:
        """Confirmed, but not found by a reader of the whole stream, or found out of order."""
        return sum(self.missing_of(reader) + reader.out_of_order for reader in self.read)

    def missing_of(self, reader: Read) -> int:
        return self._missing([reader.times])

    @property
    def unarchived(self) -> int:
        """Confirmed, but not in the lake, or not once."""
        return self._missing([self.archived.times]) + self.archived.out_of_order if self.archived else 0

    def lines(self) -> list[tuple[str, int]]:
        archived = [] if self.archived is None else [("in the lake", self.archived.rows)]
        archived += [("not in the lake, or not once", self.unarchived)] if archived else []
        return [
            ("sent", self.sent),
            ("confirmed", self.confirmed),
            ("lost", self.lost),
            ("published again, since no confirm came", self.again),
            ("delivered again", self.redelivered),
            ("of these without the mark `redelivered`", self.unmarked),
            ("heard by subscribers, once each", self.once),
            ("heard twice", self.doubled),
            ("not heard by one whose broker lived", self.unheard),
            ("read from the stream, by all readers", sum(reader.end_offset for reader in self.read)),
            ("not in the stream, or not in its place", self.unread),
            *archived,
        ]

    def balances(self) -> bool:
        """Nothing lost, nothing twice without saying so, nothing unheard."""
        wrong = self.lost or self.unmarked or self.doubled or self.unheard or self.unread or self.unarchived
        return self.sent > 0 and self.confirmed == self.sent and not wrong
