"""What clients were promised and what they saw: the facts that all checkers share.

Every publish is a message of its own, also if a publisher says the same again after it lost its connection: its body
begins with the number of its channel and its own number on it, so that every delivery can be told from every other.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from pandomq.sim.queues import QueueKind


class BrokenPromise(Exception):
    """The broker did what it must not."""

    def __init__(self, promise: str, text: str) -> None:
        super().__init__(f"{promise}: {text}")
        self.promise = promise


@dataclass(slots=True, eq=False)
class Message:
    channel: int
    """The publisher's; no two channels of a world have the same number."""
    number: int
    """From one on, in the order of publishing."""
    queues: tuple[str, ...]
    persistent: bool
    priority: int
    value_key: str | None
    life: int
    """Of the broker it was published to."""
    sent_ms: int
    """By the broker's clock."""
    transaction: Transaction | None = None
    confirmed: bool = False
    refused: bool = False
    confirmed_life: int = 0
    confirmed_ms: int = 0
    """By the world's time."""
    said_again: bool = False
    """By its publisher, under the same number: if the broker has lost the first it is a new one."""
    discarded: bool = False
    """It was staged, and nobody will ever name it."""

    def __str__(self) -> str:
        return f"message {self.channel}:{self.number}"


class Phase(enum.Enum):
    OPEN = "open"
    COMMITTING = "in doubt"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"


@dataclass(slots=True, eq=False)
class Transaction:
    number: int
    messages: list[Message] = field(default_factory=list)
    settled: list[tuple[str, Message]] = field(default_factory=list)
    """Deliveries that it acks."""
    phase: Phase = Phase.OPEN

    def __str__(self) -> str:
        return f"transaction {self.number}"


Place = tuple[str, Message]


class Delivery(NamedTuple):
    """As the broker wrote it."""

    message: Message
    queue: str
    redelivered: bool
    asked: bool
    """The answer to basic.get, which may have waited behind other answers."""
    connection: object
    """Whose client gets it."""

    @property
    def place(self) -> Place:
        return (self.queue, self.message)


class Ledger:
    def __init__(self) -> None:
        self.kinds: dict[str, QueueKind] = {}
        self.messages: dict[bytes, Message] = {}
        self.transactions: list[Transaction] = []
        self.emitted: dict[Place, int] = {}
        """What the broker wrote to a consumer, and in which of its lives it did so first."""
        self.settled: dict[Place, int] = {}
        """How often its ack was sent, or none was wanted: it need not come again."""
        self.proven: set[Place] = set()
        """The ack is known to be safe: it must not come again."""
        self.left: dict[str, list[Message]] = {}
        """What the queues held in the end."""
        self._channels = 0
        self.ends_ms: list[int] = []
        """When processes ended, by the world's time."""
        self.losses_ms: list[int] = []
        """When machines lost what was not synced, or more."""

    def new_channel(self) -> int:
        self._channels += 1
        return self._channels

    def begin_epoch(self) -> None:
        """A broker was promoted by force: what was promised before may be lost, and what was acked may come again."""
        for message in self.messages.values():
            message.confirmed = message.refused = False
        for transaction in self.transactions:
            if transaction.phase is Phase.COMMITTED:
                transaction.phase = Phase.COMMITTING
        self.proven.clear()

    def settle(self, place: Place) -> None:
        self.settled[place] = self.settled.get(place, 0) + 1

    def unsettle(self, place: Place) -> None:
        """The client was told that its ack does not count."""
        self.settled[place] -= 1
        if not self.settled[place]:
            del self.settled[place]

    def message_of(self, body: bytes) -> Message:
        message = self.messages.get(body.partition(b"|")[0])
        if message is None:
            raise BrokenPromise("nothing is made up", f"a delivery of {body[:40]!r}, which nobody published")
        return message

    def find(self, queue: str, message: Message) -> bool:
        """Whether it was ever seen where it was published to, or where such messages go when they die."""
        return any((place, message) in self.emitted for place in self.places(queue))

    def places(self, queue: str) -> tuple[str, ...]:
        dead = self.kinds[queue].dead_letters_to
        return (queue,) if dead is None else (queue, dead)
