"""Synthetic traces: possible events of publishers, queues and consumers, in the form of brokers' traces."""

from __future__ import annotations

import random
from collections.abc import Iterable

from pandomq.trace_form import UNKNOWN_US, Event, Events, Kind, Reason, encode_events

BEGIN_US = 1_700_000_003_000_000
"""Within a ten-second window, a minute and an hour, and at the beginning of none."""
QUEUES = ("orders", "mails", "sonde ü")
EXCHANGES = ("", "shop", "<events>")


def message_events(chance: random.Random, sequence: int, time_us: int) -> list[Event]:
    """Yields the events of a message from this time on."""
    queue, exchange = chance.choice(QUEUES), chance.choice(EXCHANGES)
    key, size = f"key.{int(chance.paretovariate(1.0)) % 40}", int(chance.lognormvariate(6, 2))

    def event(
        kind: Kind, after_us: int = 0, consumer: str = "", reason: Reason = Reason.NONE, held_us: int = -1
    ) -> Event:
        since_us = after_us if chance.random() < 0.95 else UNKNOWN_US
        return Event(
            kind,
            reason,
            time_us + after_us,
            "" if kind == Kind.UNROUTABLE else queue,
            0 if kind == Kind.UNROUTABLE else QUEUES.index(queue) + 1,
            sequence,
            exchange,
            key,
            consumer,
            f"connection {len(consumer)}" if consumer else "",
            size,
            since_us,
            held_us=held_us,
        )

    if chance.random() < 0.02:
        return [event(Kind.UNROUTABLE)]
    life = [event(Kind.PUBLISHED), event(Kind.CONFIRMED, int(chance.lognormvariate(7, 1)))]
    wait_us = int(chance.lognormvariate(8, 2))
    if chance.random() < 0.05:
        return [*life, event(Kind.DEAD_LETTERED, wait_us, reason=chance.choice(list(Reason)[1:]))]
    consumer = f"consumer-{chance.randrange(5)}"
    life.append(event(Kind.DELIVERED, wait_us, consumer))
    if chance.random() < 0.1:
        life.append(event(Kind.REDELIVERED, 2 * wait_us + 1, consumer))
    held_us = int(chance.lognormvariate(9, 1))
    return [*life, event(Kind.ACKED, 2 * wait_us + held_us, consumer, held_us=held_us)]


def batch_of(events: Iterable[Event], *, broker: str = "b1", number: int = 0, sample: float = 1.0) -> Events:
    batch = Events(broker, term=3, number=number, sample=sample)
    for event in events:
        batch.add(event)
    return batch


def batches(seed: int, messages: int, spacing_us: int, per_batch: int = 200, sample: float = 1.0) -> list[Events]:
    """Yields batches in order of time, with so many events each; two brokers alternate."""
    chance = random.Random(seed)
    lives = [message_events(chance, number, BEGIN_US + number * spacing_us) for number in range(messages)]
    events = sorted((event for life in lives for event in life), key=lambda event: event.time_us)
    parts = [events[at : at + per_batch] for at in range(0, len(events), per_batch)]
    return [
        batch_of(part, broker=f"b{number % 2 + 1}", number=number // 2, sample=sample)
        for number, part in enumerate(parts)
    ]


def bodies(some: Iterable[Events]) -> list[bytes]:
    return [encode_events(batch) for batch in some]
