"""Frozen copies of what is remembered of producers that number their messages, and of what is staged."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pandomq.broker.staging.names import PREFIX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.named_producers import NamedProducer


class ProducerView(msgspec.Struct, frozen=True):
    vhost: str
    name: str
    last_sequence: int
    """The highest that had its effect; -1 if none had."""
    forgotten_through: int
    """Of numbers up to this one it is not known whether they came; -1 if all are known."""
    gaps: int
    """Between the numbers that are remembered."""
    refused: int
    """Numbers that a queue refused, or that came back; they may come again, unless some queue has taken them."""
    connection: str | None
    """That publishes under this name, if it is a connection to this broker."""
    noted_ms: int
    """When it last published something new."""


class DeduplicationView(msgspec.Struct, frozen=True):
    producers: int
    producers_max: int
    producer_age_ms: int
    duplicates: int
    """Since the broker started, as the next two: publishes that had their effect before."""
    fenced: int
    """Publishes under a name that a newer connection has."""
    forgotten: int
    """Producers."""


class StagedView(msgspec.Struct, frozen=True):
    """Of batches that are staged, as a whole."""

    attempts: int
    size_bytes: int
    batches_open: int
    parts_published: int
    """Since the broker started."""


class ProducerViews:
    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def all(self) -> Iterator[ProducerView]:
        peers = _peers(self._broker)
        for producer in list(self._broker.state.named_producers):
            yield _view(producer, peers)

    def one(self, vhost: str, name: str) -> ProducerView | None:
        producer = self._broker.state.named_producers.find(vhost, name)
        return None if producer is None else _view(producer, _peers(self._broker))

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
        queues = [
            queue.kernel
            for vhost in state.vhosts.values()
            for name, queue in vhost.inner_queues.items()
            if name.startswith(PREFIX)
        ]
        return StagedView(
            attempts=len(queues),
            size_bytes=sum(queue.ready_bytes for queue in queues),
            batches_open=len(state.staged.open),
            parts_published=self._broker.staging.expansion.part_count,
        )


def _peers(broker: "Broker") -> dict[int, str]:
    return {client.identity: client.peer for client in broker.clients if client.identity}


def _view(producer: "NamedProducer", peers: dict[int, str]) -> ProducerView:
    return ProducerView(
        vhost=producer.vhost,
        name=producer.name,
        last_sequence=producer.last,
        forgotten_through=producer.forgotten_through,
        gaps=max(0, len(producer.accepted) // 2 - 1),
        refused=len(producer.odd),
        connection=peers.get(producer.owner),
        noted_ms=producer.noted_ms,
    )
