"""The account of the promises to clients, over all faults; at the end it must balance.

Every message has a number of its own and is sent once: a publish without an answer is in doubt, may be there or not,
and is not sent again. So a message that arrives twice was delivered twice by the brokers, and must have `redelivered`
set.

Promises: a confirmed message is not lost; a message whose ack was proven by a later confirm on its channel does not
come back; first deliveries of one publisher's messages are in its order; a repeated delivery has `redelivered` set. A
consumer that gives up a broker without an answer may have been sent messages that it never received: they arrive late,
as redelivered ones, and no more of them than its prefetch.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field


class Pauses:
    """The longest time between two confirms."""

    def __init__(self) -> None:
        self._last: float | None = None
        self.longest_s = 0.0

    def confirmed(self) -> None:
        now = time.monotonic()
        if self._last is not None:
            self.longest_s = max(self.longest_s, now - self._last)
        self._last = now


class Ledger:
    """The account of one queue, with one consumer at a time and any number of publishers."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.sent: set[str] = set()
        self.confirmed: set[str] = set()
        self.refused: set[str] = set()
        """The messages that the broker refused: it may not deliver them later."""
        self.acked: set[str] = set()
        """Messages whose ack was sent, whatever its effect."""
        self.proven: set[str] = set()
        self.received: set[str] = set()
        self.redeliveries = 0
        self.broken: list[str] = []
        self.pauses: dict[str, Pauses] = defaultdict(Pauses)
        self._numbers = itertools.count()
        self._last: dict[str, int] = defaultdict(lambda: -1)
        """The number of the message of each publisher and connection that was first delivered last."""
        self._unseen_max = 0
        """The number of messages that may have been delivered to connections that were given up."""

    def send(self, publisher: str) -> str:
        """Returns the body of a new message. A publisher's name may end with a dot and the number of its connection:
        order is promised for each channel, and messages that a publisher left behind on another connection may arrive
        later."""
        body = f"{publisher}:{next(self._numbers)}"
        self.sent.add(body)
        return body

    def confirm(self, body: str) -> None:
        self.confirmed.add(body)
        self.pauses[re.split("[.:]", body)[0]].confirmed()

    def give_up(self, prefetch: int) -> None:
        """The consumer has left a connection with an unknown number of messages under way."""
        self._unseen_max += prefetch

    def receive(self, body: str, redelivered: bool) -> None:
        publisher, number = body.split(":")
        if body not in self.sent:
            self.broken.append(f"{body} was never sent")
        if body in self.proven:
            self.broken.append(f"{body} came back after its ack was proven")
        if body in self.refused:
            self.broken.append(f"{body} was refused, and delivered nevertheless")
        if body in self.received:
            self.redeliveries += 1
            if not redelivered:
                self.broken.append(f"{body} was delivered again and does not say so")
        elif redelivered and int(number) < self._last[publisher] and self._unseen_max:
            self._unseen_max -= 1
        else:
            if int(number) < self._last[publisher]:
                self.broken.append(f"{body} was first delivered after {self._last[publisher]}")
            self._last[publisher] = int(number)
        self.received.add(body)

    def check_left(self, left: list[tuple[str, bool]]) -> None:
        """Checks the final content of the queue, when all clients have stopped."""
        for body, redelivered in left:
            self.receive(body, redelivered)
        bodies = [body for body, _ in left]
        self.broken += [f"{body} is in the queue twice" for body in sorted(set(bodies)) if bodies.count(body) > 1]
        lost = self.confirmed - self.acked - set(bodies)
        self.broken += [f"{body} was confirmed and is lost" for body in sorted(lost)]

    @property
    def longest_pause_s(self) -> float:
        return max((pauses.longest_s for pauses in self.pauses.values()), default=0.0)


@dataclass
class TransactionLedger:
    """Transactions publish all their messages or none; some move a message from one queue to two others."""

    committed: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    """Messages to be moved, confirmed."""
    moved: set[str] = field(default_factory=set)
    """Messages whose commit was answered."""
    errors: int = 0
    """Commits and other requests that were answered by an error, or by the end of the connection."""
    broken: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def name(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def check_whole(self, left: list[str], size: int) -> None:
        counts: dict[str, int] = defaultdict(int)
        for name in left:
            counts[name] += 1
        self.broken += [f"{count} of {name}'s {size} messages" for name, count in counts.items() if count != size]
        self.broken += [f"{name} was committed and is lost" for name in sorted(self.committed - counts.keys())]

    def check_moved(self, source: list[str], rejected: list[str], moved: list[str]) -> None:
        """Checks that each message is in its first queue, or in both of the other queues; once, in either case."""
        self.broken += [f"{name} was moved and is still in the source" for name in source if name in self.moved]
        for name in sorted(self.given | {*source, *rejected, *moved}):
            places = source.count(name), rejected.count(name), moved.count(name)
            if places not in ((1, 0, 0), (0, 1, 1)):
                self.broken.append(f"{name} is in source, rejected and moved {places} times")


class Account:
    def __init__(self) -> None:
        self.ledgers: dict[str, Ledger] = {}
        self.transactions = TransactionLedger()

    def ledger(self, queue: str) -> Ledger:
        return self.ledgers.setdefault(queue, Ledger(queue))

    @property
    def broken(self) -> list[str]:
        found = [f"{ledger.queue}: {what}" for ledger in self.ledgers.values() for what in ledger.broken]
        return found + [f"transactions: {what}" for what in self.transactions.broken]

    @property
    def confirmed(self) -> int:
        return sum(len(ledger.confirmed) for ledger in self.ledgers.values())

    def summary(self) -> dict[str, object]:
        ledgers = self.ledgers.values()
        return {
            "sent": sum(len(ledger.sent) for ledger in ledgers),
            "confirmed": self.confirmed,
            "received": sum(len(ledger.received) for ledger in ledgers),
            "proven": sum(len(ledger.proven) for ledger in ledgers),
            "redelivered": sum(ledger.redeliveries for ledger in ledgers),
            "in_doubt": sum(len(ledger.sent - ledger.confirmed - ledger.refused) for ledger in ledgers),
            "transactions": len(self.transactions.committed) + len(self.transactions.moved),
            "longest_pause_s": {ledger.queue: round(ledger.longest_pause_s, 3) for ledger in ledgers},
            "broken": self.broken,
        }
