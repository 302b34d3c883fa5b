"""Bugs of streams, and of the tables that remember the numbers of publishers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.leases.leases import Leases
from pandomq.broker.log.snapshot import Snapshot
from pandomq.broker.publishing.deduplication import Deduplication
from pandomq.broker.staging.decisions import Decisions
from pandomq.broker.streams.stream import Stream
from tests.sim.planted.planted_bug import Patch, PlantedBug

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.broker.leases.leases import OnLease
    from pandomq.broker.publishing.deduplication import Label
    from pandomq.broker.queues.queue_settings import QueueSettings

NODES: Final = 3


def _forget_open_chunk(patch: Patch) -> None:
    note_stream = Snapshot._note_stream

    def forgetful(snapshot: Snapshot, queue_id: int, stream: Stream) -> None:
        note_stream(snapshot, queue_id, stream)
        kept, chunk, _ = snapshot._streams.pop()
        snapshot._streams.append((kept, chunk, 0))

    patch.set(Snapshot, "_note_stream", forgetful)


def _drop_first_chunk(patch: Patch) -> None:
    sealed = Stream.sealed

    def wasteful(stream: Stream, chunk: kernel.Chunk, settings: QueueSettings, now_us: int) -> int:
        lost = sealed(stream, chunk, settings, now_us)
        if len(stream.index.rows) > 1:
            stream.drop_before(stream.index.rows[1].first_offset)
        return lost

    patch.set(Stream, "sealed", wasteful)


def _take_duplicates(patch: Patch) -> None:
    def trusting(deduplication: Deduplication, channel: Channel, message: kernel.Message) -> Label:
        return deduplication.claim(channel.client, message)

    patch.set(Deduplication, "admit", trusting)


def _keep_numbers_in_memory(patch: Patch) -> None:
    def forgetful(deduplication: Deduplication) -> None:
        touched, deduplication._touched = deduplication._touched, []
        for producer in touched:
            producer.take_notes()
            deduplication._broker.state.named_producers.settle(producer, deduplication._broker.now_ms)

    patch.set(Deduplication, "note", forgetful)


def _decide_again(patch: Patch) -> None:
    patch.set(Decisions, "last_batch", lambda decisions, vhost, user, query: -1)


def _release_nothing(patch: Patch) -> None:
    release = Leases.release

    def forgetful(
        leases: Leases, vhost: str, queue: str, name: str, _offset: int, on_lease: OnLease, now_ms: int
    ) -> None:
        release(leases, vhost, queue, name, leases._find(vhost, queue, name).first_offset, on_lease, now_ms)

    patch.set(Leases, "release", forgetful)


PLANTED_BUGS: Final = (
    PlantedBug("open-chunk-forgotten", "A snapshot omits the open chunk at the end of a stream.", _forget_open_chunk),
    PlantedBug("stream-too-short", "A stream drops messages that its retention should keep.", _drop_first_chunk),
    PlantedBug("duplicates-taken", "The broker accepts a number that it has seen before.", _take_duplicates),
    PlantedBug(
        "numbers-not-logged", "The broker keeps the numbers of publishers in its memory only.", _keep_numbers_in_memory
    ),
    PlantedBug(
        "batch-decided-twice", "The broker accepts the commit of a batch again that is already decided.", _decide_again
    ),
    PlantedBug("release-forgotten", "A released message stays leased.", _release_nothing),
    PlantedBug(
        "numbers-of-root", "The next root does not know the numbers of publishers.", _keep_numbers_in_memory, NODES
    ),
)
