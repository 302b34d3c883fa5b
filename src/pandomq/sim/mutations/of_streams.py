"""Bugs of streams, and of what keeps the numbers of publishers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.broker.deduplication import Deduplication
from pandomq.broker.leases.leases import Leases
from pandomq.broker.snapshot import Snapshot
from pandomq.broker.staging.decisions import Decisions
from pandomq.broker.streams.stream import Stream
from pandomq.sim.mutations.mutation import Mutation, Patch

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.broker.deduplication import Label
    from pandomq.broker.leases.leases import OnLease
    from pandomq.broker.queue_settings import QueueSettings

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
    patch.set(Decisions, "last_batch", lambda decisions, vhost, query: -1)


def _release_nothing(patch: Patch) -> None:
    release = Leases.release

    def forgetful(
        leases: Leases, vhost: str, queue: str, name: str, _offset: int, on_lease: OnLease, now_ms: int
    ) -> None:
        release(leases, vhost, queue, name, leases._find(vhost, queue, name).first_offset, on_lease, now_ms)

    patch.set(Leases, "release", forgetful)


MUTATIONS: Final = (
    Mutation("open-chunk-forgotten", "a snapshot lacks the end of a stream", _forget_open_chunk, streams=True),
    Mutation("stream-too-short", "a stream drops what it is to keep", _drop_first_chunk, streams=True),
    Mutation("duplicates-taken", "a number that came before counts again", _take_duplicates, streams=True),
    Mutation("numbers-not-logged", "numbers are forgotten with the process", _keep_numbers_in_memory, streams=True),
    Mutation("batch-decided-twice", "a batch that is decided is taken again", _decide_again, streams=True),
    Mutation("release-forgotten", "what is released stays leased", _release_nothing, streams=True),
    Mutation("numbers-of-root", "the next root does not know numbers", _keep_numbers_in_memory, NODES, streams=True),
)
