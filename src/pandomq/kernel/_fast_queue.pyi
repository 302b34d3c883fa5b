"""The part of the contract of the kernel (`_fast.pyi`) that is about queues and streams.

There is no module of this name: both twins offer all of it themselves.
"""

from typing import Any, final

from pandomq.kernel._fast import Channel, Consumer, Engine, Page
from pandomq.kernel._fast_chunk import Chunk
from pandomq.kernel._fast_inputs import Message
from pandomq.kernel._fast_trace import Trace

@final
class Queue:
    """Messages in order of priority and sequence, and who may have them."""

    owner: Any
    trace: Trace | None  # settable: gathers what happens to its messages
    label: bytes  # settable: what traces call it
    queue_id: int  # in log records; of a mirror: the root's, settable, 0 if it is not known
    logged: bool  # durable: messages that are kept and their settlements go to the log
    next_sequence: int
    unacked_count: int
    deleted: bool
    # Counters since start.
    published: int
    delivered: int
    redelivered: int
    acked: int
    dropped: int  # overflowed, expired, rejected, or out of date in a last-value queue
    def __init__(self, engine: Engine, owner: Any, queue_id: int, logged: bool) -> None: ...
    def configure(
        self,
        *,
        ttl_ms: int = -1,
        length_max: int = -1,
        bytes_max: int = -1,
        overflow: int = ...,
        dead_letters: bool = False,
        priority_max: int = 0,
        delivery_limit: int = -1,
        counts_deliveries: bool = False,
        last_value_key: bytes | None = None,
        single_active: bool = False,
        withdrawable: bool = False,
        synced: bool = False,
        mirror: bool = False,
        outlet: bool = False,
        stream: bool = False,
        chunk_bytes: int = ...,
        chunk_age_ms: int = ...,
    ) -> None:
        """Takes effect at once (a shorter limit drops at the next enqueue or deliver); ttl concerns messages enqueued
        from now on. priority_max, last_value_key, withdrawable, mirror and stream are set before the first message,
        single_active, mirror and stream before the first consumer; later they stay as they are. Without dead_letters,
        messages that die are dropped and only counted; with it they are put into Engine.dead. Messages of a
        withdrawable queue never leave memory, and replay tells of them. With synced every message is confirmed as if
        it were persistent. What enters an outlet is confirmed when Engine.outlets_received names its batch, and not
        before the log allows it.

        A mirror queue holds what the root delivered to one channel here, under the root's delivery tags as sequences.
        Settlements of that are written to the uplink of the channel's session, with those tags, acks joined where they
        can be; nothing else happens here. If there is no uplink, another one than when it came, or if the queue is
        deleted, tags say nothing: then they are written as rows of SETTLE, if the message's place is known (queue_id,
        and `number` and `producer` of the message as sequence and term). Those that do not requeue are kept by the
        channel until they are proven; not in TRANSACTION mode. Nothing is written of a channel that is being closed.
        Its messages never leave memory.

        A stream (logged, else ValueError) minds chunk_bytes and chunk_age_ms alone, and is always synced. Before a
        message is appended the open chunk is full if it has so many bytes (constants.CHUNK_ROW_BYTES more for each
        message), CHUNK_MESSAGES_MAX messages, or if its first message is so old."""
    @property
    def open_chunk(self) -> Chunk | None: ...  # of a stream; empty only before its first message
    @property
    def committed_end(self) -> int: ...  # of a stream: the offset after the last message that is committed, or replayed
    def reinstate_stream(self, next_sequence: int, open_rows: bytes) -> None:
        """Puts a stream back, all of it committed: what its open chunk gave when it was sealed, or nothing. Raises
        ValueError (BadChunk) if that is no chunk, or ends later."""
    @property
    def ready_count(self) -> int: ...
    @property
    def ready_bytes(self) -> int: ...  # bodies
    def consumers(self) -> list[Consumer]: ...  # by priority, then by age
    @property
    def consumer_count(self) -> int: ...
    def take(self, channel: Channel, no_ack: bool, now_ms: int) -> tuple[int, bool, Message, int] | None:
        """basic.get: delivery tag, redelivered, message, messages left; None if empty, or if head_missing: then its
        page is wanted."""
    @property
    def head_missing(self) -> bool: ...
    # The message that comes next is in a page; or it may not be delivered yet, since one before it left undelivered
    # (dropped, expired, purged, out of date) and the entry that says so is not committed: were it lost, that message
    # would come back, and be delivered after those that were behind it.
    def withdraw(self, sequence: int) -> Message | None:
        """Removes one ready message of a withdrawable queue by sequence number, logging the dequeue; None if it is not
        there."""
    def purge(self) -> int: ...  # drops the ready messages (logged), says how many
    def await_log(self) -> None:
        """Consumers of a logged queue get nothing more until this batch's entry is committed."""
    def expire(self, now_ms: int) -> None: ...
    @property
    def next_deadline_ms(self) -> int: ...  # of the first message of each priority; NEVER_MS if none
    timer_armed: bool  # the caller's timer will fire at what next_deadline_ms was when this was set to True
    def delete(self) -> int:
        """Drops everything (the caller logs the deletion as a command); consumers are removed; later settlements of
        its messages are ignored. Says how many were ready."""
    def drop(self, sequence_first: int, count: int) -> None:
        """Removes ready messages by sequence number, without logging: replay of RECORD_DEQUEUE."""
    def reinstate(
        self, message: Message, sequence: int, term: int, deadline_ms: int, delivery_count: int, redelivered: bool
    ) -> None:
        """Puts a message back as `snapshot` gave it, without logging and without limits."""
    def reinstate_page(self, index: tuple[bytes, bytes], owner: Any) -> Page:
        """Puts a page back as Page.index described it: before the messages, in the order of `pages`. Raises ValueError
        if that is no index, or not in order."""
    def suspect(self) -> None:
        """Any ready message may have been delivered before: from now on they say `redelivered`."""
    def pages(self) -> list[Page]: ...  # from the highest priority, in the order of delivery
    def snapshot(self) -> list[tuple[int, int, int, int, bool, Message]]:
        """Ready messages in memory, in delivery order: sequence, term, deadline, delivery count, redelivered,
        message."""
