"""The messages between the demo's clients, and the reports to the parent.

A message contains its publisher, its number, the attempt and the time. Publishers number their messages from 0 without
gaps, so that a lost message is noticed. Reports go through a queue: `Progress` several times a second, and at last the
data for the account.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

EXCHANGE = "demo.orders"
QUEUES = ("demo.eu", "demo.us", "demo.asia")
STREAM = "demo.journal"
"""The stream receives all messages, too."""
HEARD_KEY = QUEUES[0]
"""The key of the subscribers with private queues: every third message has it."""
NOBODYS_KEY = "demo.nowhere"
"""A key without messages."""
BODY = struct.Struct(">HHQd")
BODY_BYTES = 256
PADDING = bytes(BODY_BYTES - BODY.size)
REPORT_EVERY_S = 0.1
QUIET_S = 1.0
"""A client that is told to stop continues until nothing has arrived for this time."""

Copy = tuple[int, int]
"""A publisher and an attempt."""


@dataclass(frozen=True)
class Progress:
    """The events in one process since its last report."""

    published: int = 0
    confirmed: int = 0
    delivered: int = 0
    acked: int = 0
    heard: int = 0
    read: int = 0
    latencies_ms: tuple[float, ...] = ()
    pause_s: float = 0.0
    """The longest time without a confirm, of a publisher, that ended or still lasts."""


@dataclass(frozen=True)
class Published:
    """The last report of a publisher: all its numbers below `count` were published, all but `unconfirmed` confirmed."""

    publisher: int
    count: int
    unconfirmed: tuple[int, ...]
    again: int
    """The number of publishes that were repetitions."""
    times: tuple[float, ...]
    """The time at which each was first published."""


@dataclass(frozen=True)
class Seen:
    """The last report of a consumer: for each publisher and attempt, one byte per number with the number of
    deliveries."""

    times: dict[Copy, bytes]
    unmarked: dict[Copy, bytes]
    """The number of deliveries without `redelivered`, in the same form."""


@dataclass(frozen=True)
class Subscribed:
    """A subscriber has a private queue, and waits for messages."""


@dataclass(frozen=True)
class Heard:
    """The last report on a private queue: for each publisher and attempt, the number of deliveries of each message."""

    broker: str
    whole: bool
    """Whether it lasted until nothing more arrived; otherwise its broker was lost, and the queue with it."""
    since: float
    """The time at which it existed; it must receive everything that is published later."""
    times: dict[Copy, bytes]


@dataclass(frozen=True)
class Listened:
    """All subscribers of one process have sent their last reports."""


@dataclass(frozen=True)
class Read:
    """The last report of a reader that read the stream from its first message on."""

    broker: str
    """The broker that it used last."""
    end_offset: int
    out_of_order: int
    """How often an offset was not the one after the last."""
    times: dict[Copy, bytes]


@dataclass(frozen=True)
class Failed:
    who: str
    error: str


Report = Progress | Published | Seen | Subscribed | Heard | Listened | Read | Failed


def message_id(publisher: int, attempt: int, number: int) -> str:
    """Each attempt is a message of its own."""
    return f"{publisher}-{attempt}-{number}"


def count(counts: dict[Copy, bytearray], copy: Copy, number: int) -> None:
    times = counts.setdefault(copy, bytearray())
    if number >= len(times):
        times.extend(bytes(max(4096, number + 1 - len(times))))
    times[number] = min(255, times[number] + 1)


def frozen(counts: dict[Copy, bytearray]) -> dict[Copy, bytes]:
    return {copy: bytes(times) for copy, times in counts.items()}
