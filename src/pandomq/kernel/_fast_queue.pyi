"""The part of the kernel's contract (`_fast.pyi`) about queues and streams.

There is no module of this name: both twins export these names themselves.
"""

from typing import Any, final

from pandomq.kernel._fast import Channel, Consumer, Engine, Page
from pandomq.kernel._fast_chunk import Chunk
from pandomq.kernel._fast_inputs import Message
from pandomq.kernel._fast_trace import Trace

@final
class Queue:
    """Messages in order of priority and sequence, and the consumers that read them."""

    owner: Any
    trace: Trace | None  # settable: records what happens to its messages
    label: bytes  # settable: the queue's name in traces
    queue_id: int  # in log records; for a mirror: the root's queue id, settable, 0 if unknown
    logged: bool  # durable: messages that are kept and their settlements go to the log
    local: bool  # while Engine.replicated, messages that enter it are not kept
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
        local: bool = False,
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
        withdrawable queue never leave memory, and replay calls a hook for them. With synced every message is confirmed
        as if it were persistent. With local the log gets no record of messages that enter while Engine.replicated;
        messages that entered before keep theirs. A message that enters an outlet is confirmed when
        Engine.outlets_received names its batch, and not before the log allows it.

        A mirror queue holds what the root delivered to one channel here, under the root's delivery tags as sequences.
        Settlements of these messages are written to the uplink of the channel's session, with those tags, and acks are
        joined where possible; they have no other effect here. Tags have no meaning if there is no uplink, if the uplink
        has changed since the delivery, or if the queue is deleted: then settlements are written as rows of SETTLE, if
        the message's place is known (queue_id, and `number` and `producer` of the message as sequence and term). The
        channel keeps settlements that do not requeue until they are proven, except in TRANSACTION mode. A channel that
        is being closed writes nothing. Messages of a mirror queue never leave memory.

        A stream (logged, else ValueError) uses only chunk_bytes and chunk_age_ms, and is always synced. When a message
        is appended, the open chunk is full if it has reached chunk_bytes (with constants.CHUNK_ROW_BYTES more for each
        message), CHUNK_MESSAGES_MAX messages, or if its first message is older than chunk_age_ms.
        """
    @property
    def open_chunk(self) -> Chunk | None: ...  # of a stream; empty only before its first message
    @property
    def committed_end(self) -> int: ...  # of a stream: the offset after the last message that is committed or replayed
    def reinstate_stream(self, next_sequence: int, open_rows: bytes) -> None:
        """Restores a stream, with all of it committed, from the bytes that its open chunk had when it was sealed, or
        from nothing. Raises ValueError (BadChunk) if the bytes are no chunk, or the chunk ends later."""
    @property
    def ready_count(self) -> int: ...
    @property
    def ready_bytes(self) -> int: ...  # size of the bodies
    def consumers(self) -> list[Consumer]: ...  # by priority, then by age
    @property
    def consumer_count(self) -> int: ...
    def take(self, channel: Channel, no_ack: bool, now_ms: int) -> tuple[int, bool, Message, int] | None:
        """basic.get: returns delivery tag, redelivered, message, messages left. Returns None if the queue is empty, or
        if head_missing: then its page is wanted."""
    @property
    def head_missing(self) -> bool: ...
    # True if the next message is in a page. Also true if it may not be delivered yet, since a message before it left
    # undelivered (dropped, expired, purged, out of date) and the entry that records this is not committed: if that
    # entry were lost, the earlier message would come back and be delivered after those behind it.
    def withdraw(self, sequence: int) -> Message | None:
        """Removes one ready message of a withdrawable queue by sequence number, logging the dequeue; None if it is not
        there."""
    def purge(self) -> int: ...  # drops the ready messages (logged) and returns their number
    def await_log(self) -> None:
        """Consumers of a logged queue get no more messages until this batch's entry is committed."""
    def expire(self, now_ms: int) -> None: ...
    @property
    def next_deadline_ms(self) -> int: ...  # the deadline of the first message of each priority; NEVER_MS if none
    timer_armed: bool  # the caller's timer will fire at the next_deadline_ms of when this was set to True
    def delete(self) -> int:
        """Drops everything (the caller logs the deletion as a command), removes the consumers, and returns how many
        messages were ready. Later settlements of its messages are ignored."""
    def drop(self, sequence_first: int, count: int) -> None:
        """Replay of RECORD_DEQUEUE: removes ready messages by sequence number, without logging."""
    def reinstate(
        self, message: Message, sequence: int, term: int, deadline_ms: int, delivery_count: int, redelivered: bool
    ) -> None:
        """Puts a message back as `snapshot` returned it, without logging and without limits."""
    def reinstate_page(self, index: tuple[bytes, bytes], owner: Any) -> Page:
        """Puts a page back as Page.index described it: before the messages, in the order of `pages`. Raises ValueError
        if the index is malformed or out of order."""
    def suspect(self) -> None:
        """Any ready message may have been delivered before: from now on deliveries of them carry `redelivered`."""
    def pages(self) -> list[Page]: ...  # from the highest priority, in the order of delivery
    def snapshot(self) -> list[tuple[int, int, int, int, bool, Message]]:
        """Ready messages in memory, in delivery order: sequence, term, deadline, delivery count, redelivered,
        message."""
