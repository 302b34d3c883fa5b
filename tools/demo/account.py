"""The account of every message, from the clients' last reports and from the lake.

Messages are numbered without gaps, so that a lost message is noticed; every private queue has a line, so that a
subscriber that received nothing is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tools.demo.counters import Counters
from tools.demo.words import QUEUES, Copy, Heard, Published, Read, Seen

FOOTNOTE: Final = (
    "* The lake has one row for each copy of a message in the stream. A message that was published again, because no "
    "confirm arrived, can have two copies, so that the lake can have more rows than messages were sent."
)


@dataclass(frozen=True)
class Archived:
    """The stream's messages in the lake."""

    rows: int
    out_of_order: int
    """Offsets that are there twice, or not at all."""
    times: dict[Copy, bytes]


@dataclass(frozen=True)
class Subscription:
    """The account of a private queue."""

    broker: str
    whole: bool
    wanted: int
    """Confirmed messages that were published while the queue existed."""
    once: int
    doubled: int
    unheard: int
    """Wanted messages that were not received; not known for a queue that was lost with its broker."""


@dataclass
class Account:
    counters: Counters = field(default_factory=Counters)
    published: dict[int, Published] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    """The report of each private queue. Subscribers want every third message: those with the first queue's key."""
    read: list[Read] = field(default_factory=list)
    archived: Archived | None = None
    """None if nothing was to be archived."""
    subscribed: int = 0
    """The number of private queues that have existed."""
    listened: int = 0
    """The number of processes whose subscribers have all reported."""

    @property
    def sent(self) -> int:
        return sum(report.count for report in self.published.values())

    @property
    def confirmed(self) -> int:
        return self.sent - sum(len(report.unconfirmed) for report in self.published.values())

    @property
    def lost(self) -> int:
        """The number of confirmed messages that were never delivered."""
        return self._missing([seen.times for seen in self.seen])

    def _missing(self, found: Iterable[dict[Copy, bytes]]) -> int:
        """Returns how many confirmed messages are in none of these."""
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
        """Messages that a publisher published again because it did not know of their confirm; these are no
        redeliveries, and no broker's fault."""
        return sum(report.again for report in self.published.values())

    @property
    def redelivered(self) -> int:
        """Deliveries of messages that had been delivered before."""
        return sum(max(0, times - 1) for numbers in self._together("times").values() for times in numbers)

    @property
    def unmarked(self) -> int:
        """Redeliveries without `redelivered`."""
        return sum(max(0, times - 1) for numbers in self._together("unmarked").values() for times in numbers)

    def _together(self, what: str) -> dict[Copy, list[int]]:
        """Several consumers may have received the same copy of a message."""
        together: dict[Copy, list[int]] = {}
        for seen in self.seen:
            for copy, numbers in getattr(seen, what).items():
                sums = together.setdefault(copy, [])
                sums.extend([0] * (len(numbers) - len(sums)))
                for number, times in enumerate(numbers):
                    sums[number] += times
        return together

    def subscriptions(self) -> list[Subscription]:
        """A line for each private queue, including those that received nothing."""
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
        """Messages that a subscriber received exactly once."""
        return sum(line.once for line in self.subscriptions())

    @property
    def doubled(self) -> int:
        """Surplus copies at subscribers."""
        return sum(line.doubled for line in self.subscriptions())

    @property
    def unheard(self) -> int:
        """Confirmed messages that a subscriber did not receive although it was there from before the publish until the
        end."""
        return sum(line.unheard for line in self.subscriptions())

    @property
    def unread(self) -> int:
        """Confirmed messages that a reader of the whole stream did not find, or found out of order."""
        return sum(self.missing_of(reader) + reader.out_of_order for reader in self.read)

    def missing_of(self, reader: Read) -> int:
        return self._missing([reader.times])

    @property
    def unarchived(self) -> int:
        """Confirmed messages that are not in the lake, or not once."""
        return self._missing([self.archived.times]) + self.archived.out_of_order if self.archived else 0

    def lines(self) -> list[tuple[str, int]]:
        starred = "*" if self.footnote else ""
        archived = [] if self.archived is None else [(f"in the lake{starred}", self.archived.rows)]
        archived += [("missing from the lake, or there twice", self.unarchived)] if archived else []
        return [
            ("sent", self.sent),
            ("confirmed", self.confirmed),
            ("lost", self.lost),
            ("published again, because no confirm arrived", self.again),
            ("delivered again", self.redelivered),
            ("of these, without the mark `redelivered`", self.unmarked),
            ("received by subscribers, once each", self.once),
            ("received twice", self.doubled),
            ("not received, although the subscriber's broker lived", self.unheard),
            ("read from the stream, by all readers", sum(reader.end_offset for reader in self.read)),
            ("missing from the stream, or out of order", self.unread),
            *archived,
        ]

    @property
    def footnote(self) -> str:
        """Why there are more rows in the lake than messages were sent; empty if there are not."""
        return FOOTNOTE if self.archived is not None and self.archived.rows > self.sent else ""

    def balances(self) -> bool:
        """Whether nothing was lost, repeated without `redelivered`, or not received."""
        wrong = self.lost or self.unmarked or self.doubled or self.unheard or self.unread or self.unarchived
        return self.sent > 0 and self.confirmed == self.sent and not wrong
