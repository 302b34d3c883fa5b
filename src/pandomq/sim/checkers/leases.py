"""Leases of a queue, by name, for all clients that use them (docs/leases.md).

A lease lasts for its timeout after each answered request, of any client. It never has more messages than were
requested. Its offsets increase, also from one lease of a name to the next. Each offset has one message for ever, and a
message is in one lease at a time.

A process may stop between a client's request and its execution, and clocks drift. So a lease must exist only if both
the request that renewed it was sent, and the next one was answered, within a little less than the timeout. A read
renews a lease at the root alone. In a cluster a broker that is no longer the root may answer a read, so reads do not
count there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from pandomq.sim.agenda import Agenda
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger

TIMEOUT_MS: Final = 1_000
"""The shortest time that a broker allows."""
LASTS_MS: Final = 900
"""A little less than the timeout, so that no fast clock has reached the timeout."""
LEASE_GAP: Final = 1_000
"""More offsets than any lease of a world has, and fewer than there are between two leases of one name."""
LASTS: Final = "a lease lasts its time"
ONE: Final = "a lease has one content"


class LeaseRecord:
    """The clients' knowledge of all leases of one name, one after the other."""

    def __init__(self) -> None:
        self.first = self.end = 0
        self.noted_ms = -1
        """The time of the last answer that contained this."""
        self.lasts_until_ms = -1
        self.messages_max = 0
        """The largest number of messages that was ever requested."""
        self.may_end = False
        """Whether a client has requested the end of the lease, which may be executed at any time from then on."""

    def is_before(self, end: int) -> bool:
        """Whether a lease that ended at this offset is over, because the name has a later one."""
        return self.first > end + LEASE_GAP


class LeasesKept(Checker):
    def __init__(self, ledger: WorldLedger, agenda: Agenda) -> None:
        super().__init__(ledger)
        self._agenda = agenda
        self._epoch = 0
        self._records: dict[tuple[str, str], LeaseRecord] = defaultdict(LeaseRecord)
        self._content: dict[tuple[str, int], SentMessage] = {}
        """The message of each stream and offset."""
        self._places: dict[SentMessage, tuple[str, int]] = {}
        """The last known place of each message."""
        self._seen_ms: dict[SentMessage, int] = {}
        """The time at which each message was last known to be at its place."""
        self._left: set[tuple[str, int]] = set()
        """Places from which a message has moved to another one."""

    def _begin_epoch(self) -> None:
        if self._epoch != self.ledger.epoch:
            self._epoch = self.ledger.epoch
            self._records.clear()
            self._content.clear()
            self._places.clear()
            self._seen_ms.clear()
            self._left.clear()

    def record(self, queue: str, name: str) -> LeaseRecord:
        self._begin_epoch()
        return self._records[queue, name]

    # Requests and answers of clients.

    def asks(self, queue: str, name: str, messages_max: int) -> None:
        record = self.record(queue, name)
        record.messages_max = max(record.messages_max, messages_max)

    def asks_end(self, queue: str, name: str) -> None:
        self.record(queue, name).may_end = True

    def answered(self, queue: str, name: str, first: int, end: int, asked_ms: int) -> None:
        """A lease or a release was answered: the lease now has these offsets."""
        record, now_ms = self.record(queue, name), self._agenda.now_ms
        if end - first > record.messages_max:
            raise BrokenPromise(ONE, f"{name} has {end - first} messages, at most {record.messages_max} were asked for")
        if asked_ms > record.noted_ms and (first < record.first or end < record.end):
            raise BrokenPromise(ONE, f"{name} has {first} to {end}, and had {record.first} to {record.end}")
        if now_ms <= record.lasts_until_ms and not record.may_end and first > record.end + LEASE_GAP:
            raise BrokenPromise(LASTS, f"{name} had {record.first} to {record.end}, and begins again with {first}")
        if asked_ms > record.noted_ms:
            record.first, record.end, record.noted_ms = first, end, now_ms
        self._lasts_from(record, asked_ms)

    def read(self, queue: str, name: str, first: int, asked_ms: int) -> None:
        """A client of the only broker read from the stream of a lease; this renews the lease of the name that has this
        offset."""
        record = self.record(queue, name)
        if record.first <= first + LEASE_GAP and record.lasts_until_ms >= self._agenda.now_ms:
            self._lasts_from(record, asked_ms)

    def _lasts_from(self, record: LeaseRecord, asked_ms: int) -> None:
        record.lasts_until_ms = max(record.lasts_until_ms, asked_ms + LASTS_MS)

    def said_over(self, queue: str, name: str) -> None:
        """A broker reported the lease as over, or a client requested its end."""
        record = self.record(queue, name)
        if self._agenda.now_ms <= record.lasts_until_ms and not record.may_end:
            raise BrokenPromise(LASTS, f"{name}, which had {record.first} to {record.end}, is over too early")

    def holds(self, stream: str, offset: int, message: SentMessage, asked_ms: int, answered_ms: int) -> None:
        """The lease had the message between these two times."""
        self._begin_epoch()
        place = (stream, offset)
        known = self._content.setdefault(place, message)
        if known is not message:
            raise BrokenPromise(ONE, f"{message} is at offset {offset} of {stream}, where {known} was")
        last = self._places.setdefault(message, place)
        seen_ms = self._seen_ms.get(message, -1)
        if asked_ms <= seen_ms:
            return
        if place != last:
            if place in self._left:
                raise BrokenPromise(ONE, f"{message} is at {place}, and was already at {last}")
            self._left.add(last)
            self._places[message] = place
        self._seen_ms[message] = answered_ms
