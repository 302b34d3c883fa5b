"""What the demo's clients say to each other, in messages, and to the parent, in reports.

A message carries who published it, its number, the attempt and when. Publishers number theirs from 0 without gaps, so
that none can hide. Reports go through a queue: `Progress` several times a second, at last what the account is made of.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

EXCHANGE = "demo.orders"
QUEUES = ("demo.eu", "demo.us", "demo.asia")
STREAM = "demo.journal"
"""All that is published is also there."""
HEARD_KEY = QUEUES[0]
"""What subscribers with private queues want: every third message."""
NOBODYS_KEY = "demo.nowhere"
"""Nothing is published with it."""
BODY = struct.Struct(">HHQd")
BODY_BYTES = 256
PADDING = bytes(BODY_BYTES - BODY.size)
REPORT_EVERY_S = 0.1
QUIET_S = 1.0
"""Whoever is told to stop goes on until nothing has come for this long."""

Copy = tuple[int, int]
"""A publisher and an attempt."""


@dataclass(frozen=True)
class Progress:
    """What happened in one process since its last report."""

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
    """A publisher's last word: all its numbers below `count` were published, all but `unconfirmed` confirmed."""

    publisher: int
    count: int
    unconfirmed: tuple[int, ...]
    again: int
    """How many publishes were repetitions."""
    times: tuple[float, ...]
    """When each was published first."""


@dataclass(frozen=True)
class Seen:
    """A consumer's last word: for each publisher and attempt a byte per number, how often it came."""

    times: dict[Copy, bytes]
    unmarked: dict[Copy, bytes]
    """And how often without `redelivered`."""


@dataclass(frozen=True)
class Subscribed:
    """A subscriber has a private queue, and waits for what comes."""


@dataclass(frozen=True)
class Heard:
    """The last word of a subscriber about one private queue: for each publisher and attempt how often each came."""

    broker: str
    whole: bool
    """It lasted until nothing more came; otherwise its broker was lost, and the queue with it."""
    since: float
    """When it was there: it is to hear what is published later."""
    times: dict[Copy, bytes]


@dataclass(frozen=True)
class Listened:
    """All subscribers of one process have had their last word."""


@dataclass(frozen=True)
class Read:
    """The last word of a reader that read the stream from its first message on."""

    broker: str
    """Where it was at last."""
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
