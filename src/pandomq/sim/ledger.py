"""The promises to clients and the clients' observations: the facts that all checkers share.

Every publish is a message of its own, even if a publisher repeats a publish after it lost its connection. The body
begins with the number of the channel and the message's number on it, so every delivery identifies its message.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from pandomq.sim.queues import QueueKind


class BrokenPromise(Exception):
    """The broker did something that it must not do."""

    def __init__(self, promise: str, text: str) -> None:
        super().__init__(f"{promise}: {text}")
        self.promise = promise


@dataclass(slots=True, eq=False)
class SentMessage:
    channel: int
    """The number of the publisher's channel; no two channels of a world have the same number."""
    number: int
    """The number on the channel, from one on, in the order of publishing."""
    queues: tuple[str, ...]
    persistent: bool
    priority: int
    value_key: str | None
    life: int
    """The life of the broker to which it was published."""
    sent_ms: int
    """The time at which it was sent, by the broker's clock."""
    transaction: ClientTransaction | None = None
    confirmed: bool = False
    refused: bool = False
    confirmed_life: int = 0
    confirmed_ms: int = 0
    """The time of the confirm in the world's time."""
    said_again: bool = False
    """The publisher has published it again under the same number: if the broker has lost the first one, the second is
    new."""
    discarded: bool = False
    """The message was staged in an attempt that no commit will ever name."""

    def __str__(self) -> str:
        return f"message {self.channel}:{self.number}"


class TransactionPhase(enum.Enum):
    OPEN = "open"
    COMMITTING = "in doubt"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"


@dataclass(slots=True, eq=False)
class ClientTransaction:
    number: int
    messages: list[SentMessage] = field(default_factory=list)
    settled: list[tuple[str, SentMessage]] = field(default_factory=list)
    """Deliveries that the transaction acks."""
    phase: TransactionPhase = TransactionPhase.OPEN

    def __str__(self) -> str:
        return f"transaction {self.number}"


Place = tuple[str, SentMessage]


class Delivery(NamedTuple):
    """A delivery, as the broker wrote it."""

    message: SentMessage
    queue: str
    redelivered: bool
    asked: bool
    """Whether this answers basic.get; such an answer may have waited behind other answers."""
    connection: object
    """The connection of the client that receives it."""

    @property
    def place(self) -> Place:
        return (self.queue, self.message)


class WorldLedger:
    def __init__(self) -> None:
        self.kinds: dict[str, QueueKind] = {}
        self.messages: dict[bytes, SentMessage] = {}
        self.transactions: list[ClientTransaction] = []
        self.emitted: dict[Place, int] = {}
        """The deliveries that the broker wrote, each with the life of the broker in which it did so first."""
        self.settled: dict[Place, int] = {}
        """How often each delivery was acked, or was sent without acks; the message need not come again."""
        self.proven: set[Place] = set()
        """Messages whose ack is known to be durable; they must not come again."""
        self.left: dict[str, list[SentMessage]] = {}
        """The messages that were in the queues at the end."""
        self._channels = 0
        self.ends_ms: list[int] = []
        """The times at which processes ended, in the world's time."""
        self.leapt_ms = 0
        """The total time in which nothing happened at all."""
        self.leaps: list[tuple[int, int]] = []
        """When the world continued after each standstill, and how long that was."""
        self.last_leap_ms = -1
        """When the world continued after the last standstill, in the world's time; -1 if there was none."""
        self.drilled_ms = 0
        """When a drill was last in progress; a drill disturbs brokers after the faults have ended."""
        self.losses_ms: list[int] = []
        """The times at which machines lost unsynced data, or more."""
        self.alone_since: int | None = None
        """The first term in which a root was the only member; messages that are not persistent were then in no
        entry."""
        self.injected = 0
        """The number of unexpected exceptions that were raised in brokers."""
        self.failed = 0
        """How often a client was told that the broker failed at its request."""
        self.epoch = 0
        """The number of forced promotions."""

    def awake_ms(self, since_ms: int, until_ms: int) -> int:
        """The time between the two in which the world did not stand still."""
        return until_ms - since_ms - sum(span_ms for at_ms, span_ms in self.leaps if since_ms < at_ms <= until_ms)

    def new_channel(self) -> int:
        self._channels += 1
        return self._channels

    def begin_epoch(self) -> None:
        """A broker was promoted by force: earlier promises may be lost, and acked messages may come again."""
        self.epoch += 1
        for message in self.messages.values():
            message.confirmed = message.refused = False
        for transaction in self.transactions:
            if transaction.phase is TransactionPhase.COMMITTED:
                transaction.phase = TransactionPhase.COMMITTING
        self.proven.clear()

    def settle(self, place: Place) -> None:
        self.settled[place] = self.settled.get(place, 0) + 1

    def unsettle(self, place: Place) -> None:
        """The client was told that its ack does not count."""
        self.settled[place] -= 1
        if not self.settled[place]:
            del self.settled[place]

    def message_of(self, body: bytes) -> SentMessage:
        message = self.messages.get(body.partition(b"|")[0])
        if message is None:
            raise BrokenPromise("nothing is made up", f"a delivery of {body[:40]!r}, which nobody published")
        return message

    def is_consumed(self, queues: Collection[str]) -> bool:
        """Whether all confirmed messages of these queues were acked, or need not come again."""
        return all(
            (queue, message) in self.settled
            for message in self.messages.values()
            if message.confirmed
            for queue in message.queues
            if queue in queues
        )

    def find(self, queue: str, message: SentMessage) -> bool:
        """Whether the message was ever seen in its queue, or in the queue of that queue's dead letters."""
        return any((place, message) in self.emitted for place in self.places(queue))

    def places(self, queue: str) -> tuple[str, ...]:
        dead = self.kinds[queue].dead_letters_to
        return (queue,) if dead is None else (queue, dead)
