"""Frozen copies of the table of producers that number their messages, and of staged batches."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.publishing.named_producers import NamedProducer


class ProducerView(msgspec.Struct, frozen=True):
    vhost: str
    name: str
    user: str
    """The user that owns the name; empty if a log of version 0.1.0 does not have it."""
    last_sequence: int
    """The highest number that had its effect; -1 if none had."""
    forgotten_through: int
    """The highest number for which the broker no longer knows whether it has received it; -1 if there is none."""
    gaps: int
    """Gaps between the numbers that are remembered."""
    refused: int
    """Numbers that a queue refused, or that were returned; they may come again, unless some queue has taken them."""
    connection: str | None
    """The connection that publishes under this name, if it is one to this broker."""
    noted_ms: int
    """The time at which the producer last published something new."""


class DeduplicationView(msgspec.Struct, frozen=True):
    producers: int
    producers_max: int
    producer_age_ms: int
    duplicates: int
    """Since the broker started, like the next two: publishes that had their effect before."""
    fenced: int
    """Publishes under a name that a newer connection has."""
    forgotten: int
    """The number of forgotten producers."""


class StagedView(msgspec.Struct, frozen=True):
    """Totals of staged batches."""

    attempts: int
    size_bytes: int
    batches_open: int
    parts_published: int
    """Since the broker started."""
    unroutable: int = 0
    """Since the broker started: messages that no queue took when they were published."""
    unroutable_by_query: dict[tuple[str, str], int] = {}
    """By vhost and query, for the last queries that had any."""


class ProducerViews:
    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def all(self) -> Iterator[ProducerView]:
        peers = _peers(self._broker)
        for producer in list(self._broker.state.named_producers):
            yield _view(producer, peers)

    def one(self, vhost: str, name: str) -> ProducerView | None:
        """The producer with this name that has published last: several users may have one."""
        named = [one for one in self._broker.state.named_producers if (one.vhost, one.name) == (vhost, name)]
        return _view(named[-1], _peers(self._broker)) if named else None

    def summary(self) -> DeduplicationView:
        counted, limits = self._broker.deduplication, self._broker.limits
        return DeduplicationView(
            producers=len(self._broker.state.named_producers),
            producers_max=limits.producers_max,
            producer_age_ms=limits.producer_age_ms,
            duplicates=counted.duplicate_count,
            fenced=counted.fenced_count,
            forgotten=counted.forgotten_count,
        )

    def staged(self) -> StagedView:
        state = self._broker.state
        expansion = self._broker.staging.expansion
        by_query: Counter[tuple[str, str]] = Counter()
        for (vhost, _, query), found in expansion.unroutable.items():
            by_query[vhost, query] += found.total
        return StagedView(
            attempts=state.attempts.count,
            size_bytes=state.attempts.size_bytes,
            batches_open=len(state.staged.open),
            parts_published=expansion.part_count,
            unroutable=expansion.unroutable_count,
            unroutable_by_query=dict(by_query),
        )


def _peers(broker: "Broker") -> dict[int, str]:
    return {client.identity: client.peer for client in broker.clients if client.identity}


def _view(producer: "NamedProducer", peers: dict[int, str]) -> ProducerView:
    return ProducerView(
        vhost=producer.vhost,
        name=producer.name,
        user=producer.user,
        last_sequence=producer.last,
        forgotten_through=producer.forgotten_through,
        gaps=max(0, len(producer.accepted) // 2 - 1),
        refused=len(producer.odd),
        connection=peers.get(producer.owner),
        noted_ms=producer.noted_ms,
    )
