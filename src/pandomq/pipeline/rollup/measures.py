"""The measures and their subjects: each event counts for its queue, its broker, and, if it has them, for its exchange,
routing key and consumer. A measure is a kind of event, dead letters one for each reason; it has a distribution of
sizes, or of the time since the message was published. HELD is an additional measure of acked and requeued messages: the
time since their delivery.
"""

from __future__ import annotations

from typing import Final

from pandomq.trace_form import Kind, Reason

QUEUE: Final = "queue"
EXCHANGE: Final = "exchange"
BROKER: Final = "broker"
KEY: Final = "key"
CONSUMER: Final = "consumer"
SUBJECTS: Final = (QUEUE, EXCHANGE, BROKER, KEY, CONSUMER)

MICROSECONDS: Final = "us"
BYTES: Final = "bytes"

TIMED: Final = (Kind.CONFIRMED, Kind.DELIVERED, Kind.REDELIVERED, Kind.ACKED)
"""Distributions of these are of times, those of all others of sizes."""
ROUTED: Final = (Kind.PUBLISHED, Kind.UNROUTABLE, Kind.REFUSED)
"""Measures of an exchange and a routing key."""

REASONS: Final = len(Reason)
"""Kind times this, and reason, is the number of a measure; there are fewer than 256."""


def name_of(kind: Kind, reason: Reason = Reason.NONE) -> str:
    name = kind.name.lower().replace("_", "-")
    return name if reason is Reason.NONE else f"{name}: {reason.name.lower().replace('_', '-')}"


HELD: Final = "held"
HELD_NUMBER: Final = 255
NAMES: Final = {kind * REASONS + reason: name_of(kind, reason) for kind in Kind for reason in Reason} | {
    HELD_NUMBER: HELD
}
UNITS: Final = {
    name_of(kind, reason): MICROSECONDS if kind in TIMED else BYTES for kind in Kind for reason in Reason
} | {HELD: MICROSECONDS}

PUBLISHED: Final = name_of(Kind.PUBLISHED)
UNROUTABLE: Final = name_of(Kind.UNROUTABLE)
CONFIRMED: Final = name_of(Kind.CONFIRMED)
DELIVERED: Final = name_of(Kind.DELIVERED)
REDELIVERED: Final = name_of(Kind.REDELIVERED)
ACKED: Final = name_of(Kind.ACKED)
EXPIRED: Final = name_of(Kind.EXPIRED)
DEAD_LETTERS: Final = {name_of(Kind.DEAD_LETTERED, reason): reason.name.lower() for reason in Reason}
"""Measures of dead letters, and their reasons."""
DROPS: Final = [name_of(Kind.DROPPED, reason) for reason in Reason]
