"""The table of producers that number their messages (D11): everything that the log has about them.

For each producer, which is a name of a user in a vhost: which numbers had their effect, which were refused and may come
again, and the owner, the connection that was the last to begin using the name. Numbers are kept as ranges, so that a
producer that leaves no gaps takes no more room after a million messages than after one. The table changes by commands
only, and they name every forgotten producer: so it is the same on every broker, whatever their configurations are.

On the root it changes in the middle of a batch, before there is a command. The changes are in `fresh`, and at the end
of the batch `settle` does with them what other brokers do when they apply the command.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from enum import IntEnum, auto
from typing import Final

from pandomq.broker.log.commands import NoteSequences, SequenceNotes
from pandomq.limits import PRODUCER_CONNECTIONS_FENCED_MAX, PRODUCER_ODD_MAX, PRODUCER_RANGES_MAX

Row = tuple[str, str, int, list[int], list[int], dict[int, bool], int, int]
"""A row of a snapshot: vhost, name, owner, fenced, accepted, odd, forgotten through, noted at. Its user is beside
it."""

Key = tuple[str, str, str]
"""Vhost, user, name."""

NOBODY: Final = ""
"""Replaces the user in logs and snapshots of version 0.1.0: there a name belonged to the vhost."""

CONNECTIONS_OF_PLACE_MAX: Final = 2**32
"""Identities of connections to one broker, between two restarts, are not farther apart, and are ordered by age."""

NOTHING: Final = -1
"""A value below every number."""

PRODUCER_BYTES: Final = 1_000
"""Estimate of the memory of a producer beside its name: the objects, and its places in the tables."""
RANGE_BYTES: Final = 80
ODD_BYTES: Final = 100
"""The same for a range of numbers, and for a refused number."""


class SequenceVerdict(IntEnum):
    """The verdict on a number."""

    NEW = auto()
    REPEATED = auto()
    """The number had its effect before."""
    IN_PART = auto()
    """Some queues took the message, and another queue refused it."""
    NEVER_SEEN = auto()
    """The number is lower than others that came."""
    FORGOTTEN = auto()
    """The number is so old that the broker no longer knows whether it has received it."""


class NamedProducer:
    __slots__ = (
        "accepted",
        "counted_bytes",
        "fenced",
        "fenced_max",
        "forgotten",
        "forgotten_through",
        "fresh",
        "fresh_odd",
        "name",
        "noted_ms",
        "odd",
        "owner",
        "owners",
        "touched",
        "user",
        "vhost",
    )

    def __init__(self, vhost: str, user: str, name: str, fenced_max: int = PRODUCER_CONNECTIONS_FENCED_MAX) -> None:
        self.vhost = vhost
        self.user = user
        self.name = name
        self.accepted: list[int] = []
        """Ranges of numbers that had their effect: first, last, first, last; rising, and never adjacent."""
        self.odd: dict[int, bool] = {}
        """Numbers that were refused: whether they may come again, since no queue took them."""
        self.owner = 0
        """The connection that may publish under this name."""
        self.fenced: list[int] = []
        """Earlier owners, which may not publish any more, the oldest first."""
        self.fenced_max = fenced_max
        self.forgotten_through = NOTHING
        """Numbers up to this one are not recorded: whether the broker has received them is not known."""
        self.noted_ms = 0
        self.forgotten = False
        """The table has dropped this object, and so must its other holders."""
        self.counted_bytes = 0
        """The part of the table's size that is counted for this producer."""
        self.touched = False
        """Whether the producer is in the notes of this batch; used on the root."""
        self.fresh: list[int] = []
        """The accepted numbers of this batch."""
        self.fresh_odd: dict[int, bool] = {}
        self.owners: list[int] = []
        """The connections that took over in this batch, in order."""

    @property
    def key(self) -> Key:
        return self.vhost, self.user, self.name

    @property
    def last(self) -> int:
        """The highest number that had its effect; NOTHING if none had."""
        return self.accepted[-1] if self.accepted else self.forgotten_through

    @property
    def size_bytes(self) -> int:
        """An estimate of its memory, after `settle`."""
        ranges_bytes = len(self.accepted) // 2 * RANGE_BYTES
        return PRODUCER_BYTES + len(self.name) + ranges_bytes + len(self.odd) * ODD_BYTES

    def judge(self, number: int) -> SequenceVerdict:
        accepted = self.accepted
        if not accepted or number > accepted[-1]:
            return SequenceVerdict.NEW if number > self.forgotten_through else SequenceVerdict.FORGOTTEN
        again = self.odd.get(number)
        if again is not None:
            return SequenceVerdict.NEW if again else SequenceVerdict.IN_PART
        before = bisect_right(accepted, number)
        if before % 2 or (before and accepted[before - 1] == number):
            return SequenceVerdict.REPEATED
        return SequenceVerdict.NEVER_SEEN if number > self.forgotten_through else SequenceVerdict.FORGOTTEN

    # On the root, in a batch.

    def accept(self, number: int) -> None:
        add_range(self.accepted, number, number)
        add_range(self.fresh, number, number)
        if self.odd:
            self.odd.pop(number, None)
            self.fresh_odd.pop(number, None)

    def refuse(self, number: int, *, in_part: bool) -> None:
        """The number may come again unless some queue took it."""
        if in_part:
            self.accept(number)
        self.odd[number] = self.fresh_odd[number] = not in_part

    def is_fenced(self, connection: int) -> bool:
        """A newer connection has the name. Connections to different brokers have no order: the one that comes now is
        newer."""
        older = 0 < self.owner - connection < CONNECTIONS_OF_PLACE_MAX
        return connection != self.owner and (older or connection in self.fenced)

    def claim(self, connection: int) -> None:
        """The connection takes over. Another one may do so in the same batch: the notes name them all."""
        self.owners.append(connection)
        self.take_over(connection)

    def copy(self) -> "NamedProducer":
        """For computing a possible future state."""
        other = NamedProducer(self.vhost, self.user, self.name)
        other.continue_from(self)
        return other

    def continue_from(self, other: "NamedProducer") -> None:
        """Takes over the other one's numbers and connections."""
        self.accepted, self.odd = list(other.accepted), dict(other.odd)
        self.owner, self.fenced = other.owner, list(other.fenced)
        self.forgotten_through = other.forgotten_through

    def take_notes(self) -> list[SequenceNotes]:
        """The changes of this batch, to be applied in this order. A connection that took over, and was followed by
        another one in the same batch, has notes of its own: so every broker fences it."""
        passing = [
            SequenceNotes(self.vhost, self.name, connection, [], [], [], self.user) for connection in self.owners[:-1]
        ]
        again = [number for number, may_come in self.fresh_odd.items() if may_come]
        in_part = [number for number, may_come in self.fresh_odd.items() if not may_come]
        notes = SequenceNotes(self.vhost, self.name, self.owner, self.fresh, again, in_part, self.user)
        self.fresh, self.fresh_odd, self.owners, self.touched = [], {}, [], False
        return [*passing, notes]

    # On every broker, at the end of a batch.

    def take_over(self, connection: int) -> None:
        if self.owner:
            self.fenced = [*self.fenced, self.owner][-self.fenced_max :]
        self.owner = connection

    def apply(self, notes: SequenceNotes) -> None:
        if notes.owner != self.owner:
            self.take_over(notes.owner)
        for first, last in zip(notes.accepted[::2], notes.accepted[1::2], strict=True):
            add_range(self.accepted, first, last)
            if first == last:
                self.odd.pop(first, None)
            elif self.odd:
                self.odd = {number: again for number, again in self.odd.items() if not first <= number <= last}
        self.odd.update(dict.fromkeys(notes.again, True))
        self.odd.update(dict.fromkeys(notes.in_part, False))

    def settle(self, now_ms: int) -> None:
        """Bounds the memory of the producer."""
        self.noted_ms = now_ms
        if len(self.accepted) > 2 * PRODUCER_RANGES_MAX:
            del self.accepted[: -2 * PRODUCER_RANGES_MAX]
            self.forgotten_through = self.accepted[0] - 1
        if len(self.odd) > PRODUCER_ODD_MAX:
            self.forgotten_through = max(self.forgotten_through, sorted(self.odd)[-PRODUCER_ODD_MAX - 1])
        if self.odd and min(self.odd) <= self.forgotten_through:
            self.odd = {number: again for number, again in self.odd.items() if number > self.forgotten_through}


class NamedProducers:
    """The named producers in the order in which they were last noted."""

    __slots__ = ("_bytes_of_users", "_fenced_max", "_of_users", "_rows", "size_bytes")

    def __init__(self, fenced_max: int = PRODUCER_CONNECTIONS_FENCED_MAX) -> None:
        self._fenced_max = fenced_max
        self._rows: OrderedDict[Key, NamedProducer] = OrderedDict()
        self._of_users: dict[str, OrderedDict[Key, NamedProducer]] = {}
        """The same rows in the same order, by user."""
        self._bytes_of_users: dict[str, int] = {}
        self.size_bytes = 0
        """An estimate of the memory of all producers, as they were after their last batches."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[NamedProducer]:
        return iter(self._rows.values())

    def find(self, vhost: str, user: str, name: str) -> NamedProducer | None:
        return self._rows.get((vhost, user, name))

    def find_former(self, vhost: str, user: str, name: str) -> NamedProducer | None:
        """The former state of a producer that is to be made: if this user has none under this name, the row of the name
        in a log of version 0.1.0. It may be this user's."""
        return self.find(vhost, user, name) or self.find(vhost, NOBODY, name)

    def make(self, vhost: str, user: str, name: str) -> NamedProducer:
        former = self.find(vhost, NOBODY, name)
        producer = self._add(NamedProducer(vhost, user, name, self._fenced_max))
        if former is not None:
            producer.continue_from(former)
        return producer

    def _add(self, producer: NamedProducer) -> NamedProducer:
        self._rows[producer.key] = producer
        self._of_users.setdefault(producer.user, OrderedDict())[producer.key] = producer
        self._count(producer, producer.size_bytes)
        return producer

    def _count(self, producer: NamedProducer, size_bytes: int) -> None:
        more_bytes, producer.counted_bytes = size_bytes - producer.counted_bytes, size_bytes
        self.size_bytes += more_bytes
        self._bytes_of_users[producer.user] = self._bytes_of_users.get(producer.user, 0) + more_bytes

    def settle(self, producer: NamedProducer, now_ms: int) -> None:
        producer.settle(now_ms)
        self._count(producer, producer.size_bytes)
        self._rows.move_to_end(producer.key)
        self._of_users[producer.user].move_to_end(producer.key)

    def first(self) -> NamedProducer:
        """The producer that was noted least recently."""
        return next(iter(self._rows.values()))

    def first_of(self, user: str) -> NamedProducer:
        """The producer of this user, who has at least one, that was noted least recently."""
        return next(iter(self._of_users[user].values()))

    def count_of(self, user: str) -> int:
        return len(self._of_users.get(user, ()))

    def bytes_of(self, user: str) -> int:
        """An estimate of the memory of this user's producers."""
        return self._bytes_of_users.get(user, 0)

    def forget(self, vhost: str, user: str, name: str) -> None:
        key = (vhost, user, name)
        producer = self._rows.pop(key)
        producer.forgotten = True
        self._count(producer, 0)
        of_user = self._of_users[user]
        del of_user[key]
        if not of_user:
            del self._of_users[user], self._bytes_of_users[user]

    def forget_vhost(self, vhost: str) -> None:
        for producer in [producer for producer in self if producer.vhost == vhost]:
            self.forget(*producer.key)

    def apply(self, command: NoteSequences) -> None:
        for notes in command.notes:
            key = (notes.vhost, notes.user, notes.name)
            producer = self.find(*key) or self.make(*key)
            producer.apply(notes)
            self.settle(producer, command.now_ms)
        for vhost, name in command.forgotten:
            self.forget(vhost, NOBODY, name)
        for key in command.forgotten_of:
            self.forget(*key)

    def rows(self) -> list[Row]:
        """Rows in order, so that `reinstate` of each, with its user, makes the same table."""
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

    def users(self) -> list[str]:
        """The users of all rows, in the same order."""
        return [producer.user for producer in self]

    def reinstate(self, row: Row, user: str) -> None:
        producer = self._add(NamedProducer(row[0], user, row[1], self._fenced_max))
        producer.owner, producer.fenced, producer.accepted, producer.odd = row[2], row[3], row[4], row[5]
        producer.forgotten_through, producer.noted_ms = row[6], row[7]
        self._count(producer, producer.size_bytes)


def add_range(ranges: list[int], first: int, last: int) -> None:
    if not ranges or first > ranges[-1] + 1:
        ranges += (first, last)
        return
    if first == ranges[-1] + 1:
        ranges[-1] = last
        return
    # The slice of the ranges that overlap this one, or are adjacent to it. A bound in the middle of a range has an odd
    # place on the left, or a position after an odd number of bounds on the right.
    begin = bisect_left(ranges, first - 1)
    begin -= begin % 2
    end = bisect_right(ranges, last + 1)
    end += end % 2
    if begin < end:
        first, last = min(first, ranges[begin]), max(last, ranges[end - 1])
    ranges[begin:end] = (first, last)
