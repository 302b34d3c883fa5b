"""Decides which batches of events count, and the watermark: on the driver, only from the batches' heads.

A batch that was written twice counts once: the second one has the same bytes. Identities are kept until every window is
closed in which they could count. A batch that is unreadable, or has events in the future, is left out, and counted.
Pure: the same heads after the same step give the same decision.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
import numpy as np

from pandomq.pipeline.rollup.results import start_of
from pandomq.pipeline.rollup.sums import LONGEST_S, MICROS
from pandomq.trace_form import BadTrace, Events, Kind, Reason, decode_events

IDENTITY_BYTES: Final = 8
IDENTITIES_MAX: Final = 200_000
"""Identities kept at most. Beyond that the oldest hour is dropped: a batch that is repeated that late counts twice."""
AHEAD_MAX_US: Final = 3600 * MICROS
"""How much later than its batch an event may be, if clocks differ."""
STORIES_MAX: Final = 10_000
"""Events of the cluster in one step."""


_KINDS: Final = np.array(list(Kind), dtype=np.uint8)
_REASONS: Final = np.array(list(Reason), dtype=np.uint8)


class BatchHead(NamedTuple):
    """One batch, without its events."""

    offset: int
    appended_us: int
    """When the broker appended it to the stream."""
    identity: bytes
    broker: str = ""
    term: int = 0
    number: int = 0
    events: int = 0
    """Number of messages' events; -1 if the batch cannot be read."""
    dropped: int = 0
    first_us: int = 0
    last_us: int = 0
    stories: str = "[]"
    """Events of the cluster: a JSON list of times and texts."""


HEAD_DDL: Final = (
    "offset BIGINT, appended_us BIGINT, identity BINARY, broker STRING, term BIGINT, number BIGINT, events BIGINT, "
    "dropped BIGINT, first_us BIGINT, last_us BIGINT, stories STRING"
)


class RollupCounts(msgspec.Struct, frozen=True):
    """Counts since the first step."""

    batches: int = 0
    events: int = 0
    """Messages' events, including late ones."""
    duplicates: int = 0
    """Repeated batches."""
    malformed: int = 0
    """Unreadable batches."""
    dropped: int = 0
    """Events that brokers dropped for lack of room."""
    lost: int = 0
    """Missing batches, by their numbers."""
    late: dict[int, int] = {}
    """Events that arrived after their window was closed, by its length."""


class Knowledge(msgspec.Struct, frozen=True):
    """The knowledge of one step from the steps before it."""

    watermark_us: int = 0
    seen_us: int = 0
    """The latest time."""
    identities: dict[int, bytes] = {}
    """Identities of counted batches, one after the other, by the longest window of their last event."""
    numbers: dict[str, list[int]] = {}
    """For each broker: its term, and the number of its last batch."""
    account: RollupCounts = RollupCounts()


class Story(NamedTuple):
    time_us: int
    broker: str
    text: str


class Decision(NamedTuple):
    skipped: frozenset[int]
    """Offsets of batches that do not count."""
    stories: list[Story]
    knowledge: Knowledge
    """After this step; late events are added when they are known."""


def head_of(offset: int, appended_us: int, body: bytes) -> BatchHead:
    identity = blake2b(body, digest_size=IDENTITY_BYTES).digest()
    try:
        batch = decode_events(body, is_checked=True)
    except BadTrace:
        return BatchHead(offset, appended_us, identity, events=-1)
    if not _is_sound(batch):
        return BatchHead(offset, appended_us, identity, events=-1)
    times_us, kinds = np.asarray(batch.time_us), np.asarray(batch.kind)
    happened = np.flatnonzero(kinds == Kind.CLUSTER).tolist()
    stories = [(batch.time_us[place], batch.texts[batch.sequence[place]]) for place in happened]
    return BatchHead(
        offset,
        appended_us,
        identity,
        batch.broker.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        batch.term,
        batch.number,
        len(batch) - len(stories),
        batch.dropped,
        int(times_us.min(initial=appended_us)),
        int(times_us.max()) if len(batch) else appended_us,
        json.dumps(stories),
    )


def _is_sound(batch: Events) -> bool:
    """The form's own check, for whole columns at a time; and the range of the sample."""
    kinds = np.asarray(batch.kind)
    texts = np.asarray(batch.sequence)[kinds == Kind.CLUSTER]
    places = ((batch.queue, batch.queues), (batch.routing, batch.routings), (batch.consumer, batch.consumers))
    return (
        0 < batch.sample <= 1
        and all(np.asarray(column).max(initial=0) < len(table) for column, table in places)
        and bool(np.isin(kinds, _KINDS).all() and np.isin(np.asarray(batch.reason), _REASONS).all())
        and (not len(texts) or int(texts.max()) < len(batch.texts))
    )


def decide(heads: Iterable[BatchHead], before: Knowledge, lateness_us: int) -> Decision:
    skipped: set[int] = set()
    stories: list[Story] = []
    identities = {hour: _split(some) for hour, some in before.identities.items()}
    known = {identity for some in identities.values() for identity in some}
    numbers = {broker: list(place) for broker, place in before.numbers.items()}
    count = msgspec.structs.asdict(before.account)
    seen_us = before.seen_us
    for head in sorted(heads):
        if head.identity in known:
            count["duplicates"] += 1
            skipped.add(head.offset)
            continue
        if head.events < 0 or head.first_us < 0 or head.last_us > head.appended_us + AHEAD_MAX_US:
            count["malformed"] += 1
            skipped.add(head.offset)
            continue
        known.add(head.identity)
        identities.setdefault(start_of(head.last_us, LONGEST_S), []).append(head.identity)
        count["batches"] += 1
        count["events"] += head.events
        count["dropped"] += head.dropped
        count["lost"] += _missing(head, numbers)
        stories += [Story(time_us, head.broker, text) for time_us, text in json.loads(head.stories)]
        if head.events or head.stories != "[]":
            # A broker whose clock is ahead must not close windows that others still need.
            seen_us = max(seen_us, min(head.last_us, head.appended_us))
    watermark_us = max(before.watermark_us, seen_us - lateness_us)
    knowledge = Knowledge(watermark_us, seen_us, _kept(identities, watermark_us), numbers, RollupCounts(**count))
    return Decision(frozenset(skipped), stories[:STORIES_MAX], knowledge)


def _missing(head: BatchHead, numbers: dict[str, list[int]]) -> int:
    """Number of missing batches of that broker before this one."""
    term, last = numbers.get(head.broker, (-1, -1))
    numbers[head.broker] = [head.term, head.number]
    return max(0, head.number - last - 1) if term == head.term else 0


def _split(identities: bytes) -> list[bytes]:
    return [identities[at : at + IDENTITY_BYTES] for at in range(0, len(identities), IDENTITY_BYTES)]


def _kept(identities: dict[int, list[bytes]], watermark_us: int) -> dict[int, bytes]:
    """Identities that could still count in a window."""
    kept = {hour: some for hour, some in identities.items() if hour + LONGEST_S * MICROS > watermark_us}
    while len(kept) > 1 and sum(map(len, kept.values())) > IDENTITIES_MAX:
        del kept[min(kept)]
    return {hour: b"".join(some) for hour, some in sorted(kept.items())}


def with_late(knowledge: Knowledge, late: Sequence[tuple[int, int]]) -> Knowledge:
    """Late events of one step, by the lengths of their windows, added to the account."""
    total = dict(knowledge.account.late)
    for length_s, events in late:
        total[length_s] = total.get(length_s, 0) + events
    return msgspec.structs.replace(knowledge, account=msgspec.structs.replace(knowledge.account, late=total))
