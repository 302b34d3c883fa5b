"""The per-message work of a broker, in batches.

This is the contract of two twins: `_fast.pyx` (compiled, over C-level buffers) and `_plain.py` (the readable oracle).
Both give the same bytes, the same log records and the same events for the same calls; tests drive them in lockstep.

What the kernel decides: how bytes become runs of publishes and settlements, what a queue holds and in which order,
which consumer gets the next message, which delivery tag means which message, when a confirm may go out, and the bytes
of deliveries and confirms. What it never does: look at a clock, read or write a file or socket, route (it asks
`Hooks.publish` and remembers the plan), build dead letters, know of users, vhosts or policies.

One *batch* is: any number of `Engine.publish`, `Engine.settle`, `Engine.enqueue` and queue calls; then the caller
handles `dead` and `returned`; then `Engine.deliver`; then `Engine.seal` gives the records for the log, `Engine.sealed`
names the index they got, and `Engine.committed` releases what waited for it. `now_ms` is the batch's time.

Messages that will not be delivered soon may leave memory as *pages*: once a batch, after `deliver`, `Engine.page_out`
gives their bytes, and `Engine.wanted` names those that are needed again, to be given back by `Engine.loaded` before
some later `deliver`, in any order. Nothing else can be seen of it: whatever needs a message that is not there waits.

A *stream* is a queue that holds no messages: what enters it is appended to its open chunk, and logged in any case. Its
consumers read chunks, each from its own place on, up to what is committed; settlements only give credit back.
"""

from collections.abc import Sequence
from typing import Any, Final, final

from pandomq.kernel._fast_chunk import Chunk
from pandomq.kernel._fast_inputs import DeliveryRun, Message, PublishRun, Scanner, SettleRun, routing_of
from pandomq.kernel._fast_queue import Queue
from pandomq.kernel._fast_trace import Trace
from pandomq.kernel.constants import (
    CONFIRM,
    DELIVERY_LIMIT,
    DROP_HEAD,
    EXPIRED,
    IMMEDIATE,
    MANDATORY,
    MAXLEN,
    NEVER_MS,
    NORMAL,
    OVERSIZED,
    RECORD_COMMAND,
    RECORD_DEQUEUE,
    RECORD_ENQUEUE,
    REJECT_PUBLISH,
    REJECT_PUBLISH_DEAD_LETTER,
    REJECTED,
    SPECIAL_COPIES,
    SPECIAL_DELAY,
    SPECIAL_EXPIRATION,
    SPECIAL_MALFORMED,
    SPECIAL_PRODUCER,
    SPECIAL_REPLY_TO,
    SPECIAL_USER_ID,
    TRANSACTION,
)
from pandomq.kernel.faults import Content, Frame, ScanFault
from pandomq.kernel.hooks import Hooks, ReplayHooks

__all__ = [
    "CONFIRM", "DELIVERY_LIMIT", "DROP_HEAD", "EXPIRED", "IMMEDIATE", "KIND", "MANDATORY", "MAXLEN", "NEVER_MS",
    "NORMAL", "OVERSIZED", "RECORD_COMMAND", "RECORD_DEQUEUE", "RECORD_ENQUEUE", "REJECTED", "REJECT_PUBLISH",
    "REJECT_PUBLISH_DEAD_LETTER", "SPECIAL_COPIES", "SPECIAL_DELAY", "SPECIAL_EXPIRATION", "SPECIAL_MALFORMED",
    "SPECIAL_PRODUCER", "SPECIAL_REPLY_TO", "SPECIAL_USER_ID", "TRANSACTION", "Channel", "Chunk", "Consumer", "Content",
    "DeliveryRun", "Engine", "Frame", "Message", "Page", "Plan", "PublishRun", "Queue", "Routes", "ScanFault",
    "Scanner", "Session", "SettleRun", "Trace", "crc32", "routing_of", "without_messages",
]  # fmt: skip

KIND: Final[str]  # "fast" or "plain"

def crc32(data: bytes | bytearray | memoryview, value: int = 0, /) -> int:
    """As zlib's, several times as fast where the processor helps."""

def without_messages(entry: bytes) -> bytes:
    """The commands of a log entry, with its time: what a broker needs that has the configuration and no messages.
    Raises BadEntry."""

@final
class Plan:
    """Where the messages of one (user, exchange, key) go, until the broker withdraws it."""

    @property
    def queues(self) -> Sequence[Queue]: ...
    @property
    def valid(self) -> bool: ...
    def __init__(self, queues: Sequence[Queue]) -> None: ...
    def withdraw(self) -> None:
        """It no longer holds. It lets go of its queues: whoever remembers it must not keep them alive."""

@final
class Routes:
    """Plans remembered for one user in one vhost, shared by its sessions. When full, everything is forgotten."""

    def __init__(self, capacity: int) -> None: ...
    def put(self, routing: bytes, plan: Plan) -> None: ...
    def find(self, routing: bytes) -> Plan | None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Page:
    """A run of ready messages of one queue and one priority that are not in memory; the caller keeps their bytes.
    An index of them stays: sequences, sizes, and which have left the queue. So they can be counted, purged, dropped."""

    owner: Any  # the caller's: where the bytes are
    queue: Queue
    count: int  # how many are still in the queue; 0 of a page that is in Engine.freed
    size_bytes: int  # their bodies
    def index(self) -> tuple[bytes, bytes] | None:
        """What a snapshot has to hold of it, for Queue.reinstate_page: those that the log has and that are still in the
        queue; None if there are none. The first part never changes and is shared, not copied, up to 8 bytes a message
        (none if sequences follow each other and sizes are equal); the second is a bit a message at most, and none
        while all of them are there (and the keys of the messages in queues with a last_value_key)."""

@final
class Engine:
    """All queues and sessions of one broker.

    The caller empties eight lists:
    `dead`: queue, message, reason, delivery count of messages that died in queues with dead_letters.
    `returned`: channel, message, flags of mandatory and unroutable ones; basic.return is written before `seal`.
    `waiting_for_time`: queues whose first message has a deadline before the one their timer was armed for, if it was
    armed at all; Queue.timer_armed is False for them. A queue may be named twice.
    `wanted`: pages whose bytes are needed, each once, in the order in which they are needed.
    `numbered`: channels with a producer of which publishes are in the batch's entry, each once a batch; emptied before
    `seal`.
    `freed`: pages that are gone for good, loaded or with all their messages. A page may be in both; to load one that is
    gone does nothing.
    `full_chunks`: chunks to which nothing will be added, in order for each stream; they may hold what is not committed.
    `wanted_chunks`: consumers of streams that need a chunk, each once, until Consumer.read_from brings it.
    """

    term: int  # stamped on every message enqueued from now on
    commit_index: int
    replicated: bool  # several brokers keep the log: logged queues log every message, not the persistent ones alone
    time_us: int  # settable: the time of events in traces, in microseconds since 1970
    prompt: bool  # until `sealed`: some publish of the batch will be confirmed when its entry is received
    dead: list[tuple[Queue, Message, int, int]]
    returned: list[tuple[Channel, Message, int]]
    waiting_for_time: list[Queue]
    wanted: list[Page]
    freed: list[Page]
    numbered: list[Channel]
    full_chunks: list[tuple[Queue, Chunk]]
    wanted_chunks: list[Consumer]
    held_bytes: int  # bodies and headers of all messages in queues or unacked, each message once
    held_messages: int
    # Paging. A message in memory counts its header, its body and constants.MESSAGE_OVERHEAD_BYTES, per queue.
    paging_bytes: int  # ready messages may take so much; 0: there is no limit, and never a page
    page_bytes: int  # a page ends with the message that makes headers and bodies as large as this
    page_messages: int  # or with this many
    ready_bytes: int  # what ready messages take, as of the last deliver, page_out or loaded
    # Counters since start.
    published: int  # by publishers, on open channels
    unroutable: int
    delivered: int
    redelivered: int
    acked: int
    confirmed: int  # positively
    def __init__(self, hooks: Hooks) -> None: ...
    def publish(self, session: Session, run: PublishRun, now_ms: int) -> None: ...
    def fan_out(self, routes: Routes, owner: Any, run: DeliveryRun, seen: dict[int, int], now_ms: int) -> None:
        """What came for a labelled consumer at the root goes to the queues here that the plans of `routes` say. `seen`
        has the last number of each producer: what is not above it is left out. Without a valid plan, or if the message
        is special, Hooks.fan_out(owner, message) takes care."""
    def mirror(self, session: Session, run: DeliveryRun, now_ms: int) -> None:
        """What the root delivered goes to the mirror queue that the channel's consumer of that tag reads; it is nacked
        with requeue to the uplink if there is none (so a consumer stays until the root has answered its cancel)."""
    def settle(self, session: Session, run: SettleRun, now_ms: int) -> None: ...
    def settle_one(
        self, channel: Channel, method_id: int, tag: int, multiple: bool, requeue: bool, now_ms: int
    ) -> None: ...
    def enqueue(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int
    ) -> bool:
        """Into every queue (each at most once; the caller removes doubles). No queue: unroutable, and `returned` if
        MANDATORY. Writes one log record for the logged queues if the message is persistent, or any if `replicated`.
        False if a queue refused it; then, with a channel in CONFIRM mode, its last counted publish will be nacked."""
    def prepare(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int, keep: bool
    ) -> tuple[bool, list[tuple[Queue, int, int]]]:
        """As enqueue, for a message that nobody may see before the log has it: it gets its places (queue, sequence,
        term) and its log record (with `keep` in any case), and enters the queues by `admit`, which must follow. False
        if a queue refused it."""
    def admit(self, message: Message, places: Sequence[tuple[Queue, int, int]], now_ms: int) -> None:
        """The message enters the queues at the places it got from `prepare`; between batches, too."""
    def forward(self, channel: Channel, message: Message, flags: int) -> None:
        """Writes a publish to the uplink of the channel's session, if it has one. In CONFIRM mode it is counted, and
        kept until it is confirmed. `publish` does so itself for all that takes a plan, after it was put into the plan's
        queues (then without MANDATORY); of the rest Hooks.publish takes care."""
    def relay_confirms(self, session: Session, run: SettleRun) -> None:
        """The root's confirms of what this session forwarded: its client gets them, as far as they are new."""
    def refuse(self, channel: Channel) -> None: ...  # its last counted publish will be nacked instead of acked
    def repeat(self, channel: Channel) -> None:
        """The channel's last counted publish had its effect before: it waits for all entries up to this batch's."""
    def deliver(self, now_ms: int) -> None:
        """Of active queues: requeued messages go back to their places, expired ones leave, consumers get the rest."""
    def page_out(self, bytes_max: int) -> list[tuple[Page, bytes]]:
        """Takes messages out of memory until ready_bytes is not above paging_bytes, nothing more is worth it, or the
        bytes reach bytes_max; those that will be delivered last go first. The caller keeps the bytes, and can give them
        back at any time. Does nothing, and quickly, below paging_bytes."""
    def loaded(self, page: Page, data: bytes) -> None:
        """Here are the bytes of a page that was wanted. It is freed, once those before it are loaded, too. Raises
        ValueError, and nothing has changed, if they are not what page_out gave."""
    @property
    def active(self) -> bool: ...  # some queue could deliver more now (a session's output was taken meanwhile)
    def log_command(self, command: bytes) -> None:
        """Adds a RECORD_COMMAND to the batch's records, in order with the others."""
    def restore(self, message: Message, places: Sequence[tuple[Queue, int, int]], now_ms: int) -> None:
        """Puts a message into queues at the places given as (queue, sequence, term), unlogged and unlimited: replay."""
    def replay(self, entry: bytes, term: int, hooks: ReplayHooks) -> None:
        """Applies a log entry: messages are restored and dropped here, all else is asked of the hooks. Raises
        records.BadEntry, and nothing was applied. Pages may go out between entries."""
    def seal(self, now_ms: int) -> bytes | None:
        """The batch's records as one log entry (see records.py), or None if nothing has to survive."""
    def sealed(self, index: int) -> None:
        """The sealed entry got this index (0: there was none). Confirms of this batch wait for it if they need it, and
        always for earlier ones of their channel; those that need not wait are written now. A confirm also waits for
        the entry that holds an earlier ack of its channel, since it proves that ack to the client."""
    def received(self, index: int) -> None:
        """Enough brokers have the entries up to this one in memory. Writes the confirms of those that need no more, out
        of order: not persistent, in no `synced` queue, no uncommitted ack or reply before them on their channel."""
    def committed(self, index: int) -> None:
        """Writes the confirms that waited for an index up to this one, in few frames (multiple); nacks one by one."""
    batch: int  # read only: the number of the batch that is being worked on; the first is 1
    def outlets_received(self, batch: int) -> None:
        """What batches up to this one have put into outlets has come out at the other ends: confirms that waited for
        it go out, if the log allows it."""
    def take_dirty(self) -> list[Session]:
        """Sessions with outgoing bytes, each once, in the order in which they became so; the list starts anew."""

@final
class Session:
    """One client connection: its channels and its outgoing bytes."""

    owner: Any
    routes: Routes
    uplink: Session | None  # where publishes of this session and settlements of mirrors go; None: it is served here
    trace: Trace | None  # settable: gathers what is unroutable, and when publishes are confirmed
    label: bytes  # settable: what traces call it
    frame_max: int
    out_bytes_max: int  # consumers of this session rest while more than this waits in it
    writable: bool  # read only; see pause and resume
    pending_bytes: int  # read only
    def __init__(self, engine: Engine, owner: Any, routes: Routes, frame_max: int, out_bytes_max: int) -> None: ...
    def channel(self, number: int) -> Channel | None: ...
    def write(self, data: bytes) -> None: ...
    def write_content(self, number: int, method: bytes, message: Message) -> None:
        """A method frame with this payload, the content header and the bodies, split at frame_max."""
    def take(self) -> bytes:
        """The outgoing bytes; consumers that rested because of them are ready again if the session is writable."""
    def pause(self) -> None: ...  # the peer reads too slowly: its consumers rest
    def resume(self) -> None: ...
    def close(self, now_ms: int) -> None:
        """Closes all channels; nothing is written to it any more."""

@final
class Channel:
    """Publish numbers, consumers and the unacked window of one channel."""

    owner: Any
    session: Session
    number: int
    open: bool  # False: whatever arrives on it is skipped in silence (it was closed by the broker)
    mode: int
    prefetch_max: int  # for all consumers together (basic.qos global); 0 = no limit; set with set_prefetch
    @property
    def unacked_count(self) -> int: ...
    @property
    def published_count(self) -> int: ...  # the last publish number counted (CONFIRM)
    @property
    def unconfirmed_count(self) -> int: ...
    producer: int  # settable; if not 0, publishes that are counted here carry it and their number
    repeats_through: int  # settable; with a producer, publishes up to this number go to Hooks.publish in any case
    def set_published(self, count: int) -> None:
        """The next publish that is counted has the number after this one. ValueError if any is unconfirmed."""
    @property
    def kept_count(self) -> int: ...  # forwarded, and kept to be sent again: all from the first unconfirmed one on
    @property
    def kept_bytes(self) -> int: ...  # their headers and bodies; Engine.held_bytes counts them, too
    @property
    def first_kept(self) -> int: ...  # its number; published_count + 1 if none is kept
    def resend(self) -> None:
        """Writes what is kept to the uplink again, in order; what was confirmed once is not confirmed again."""
    def __init__(self, session: Session, number: int, owner: Any) -> None: ...  # registers itself with the session
    def set_prefetch(self, prefetch_max: int) -> None: ...
    def hold(self) -> None:
        """A reply waits for this batch's entry, or for the last one if the batch has none. Until the release nothing is
        delivered here; what is published from now on is confirmed after that reply, and comes back by way of the
        replies. Said anew for each reply that waits."""
    def release(self) -> None: ...
    def consumers(self) -> list[Consumer]: ...
    def outstanding(self, tag: int, multiple: bool) -> list[int]:
        """The tags a settlement would concern; [] if the tag is unknown."""
    def unacked(self) -> list[tuple[Queue, int, int, int, int, bool, Message]]:
        """What is not settled, in order of the tags: the queue, then as in Queue.snapshot."""
    def place_of(self, tag: int) -> tuple[int, int]:
        """Sequence and term of what is unacked under this tag; zeros if it is unknown."""
    def recover(self, now_ms: int) -> None:
        """Requeues everything unacked."""
    # Settlements by place: queue, sequence and term.
    @property
    def unproven_count(self) -> int: ...  # kept settlements of mirrored messages, see Queue.configure
    @property
    def settled_number(self) -> int: ...  # how many were ever kept
    def prove(self, number: int) -> None:
        """Up to this one the root's log has them: they are let go."""
    def settle_again(self) -> None:
        """Writes all of them to the uplink, as rows of SETTLE (see constants.py)."""
    def settle_place(self, queue: Queue, sequence: int, term: int, method_id: int) -> int:
        """At the root: settles, logged, a message that is ready. ABSENT, SETTLED or PLACE_UNKNOWN. Later publishes of
        this channel are confirmed after that, as after an ack."""
    def settle_elsewhere(self, other: Channel, tag: int, method_id: int) -> bool:
        """The same for one that is unacked, on any channel. Its tag stays, and settling it has no effect any more.
        False if the tag is unknown."""
    def give_back(self, queue: Queue) -> int:
        """The ready messages of a mirror queue leave it, nacked with requeue to the uplink. Says how many."""
    def forget(self, queue: Queue) -> None:
        """What is unacked of this queue is so no more, without any effect: its tags are unknown from now on."""
    def forget_tag(self, tag: int) -> bool: ...  # the same for one tag; False if it is unknown
    @property
    def oldest_delivery_ms(self) -> int: ...  # when the oldest unacked message was delivered; NEVER_MS if none
    def close(self, now_ms: int) -> None:
        """Leaves the session; consumers are removed from their queues; unacked messages go back to their queues."""

@final
class Consumer:
    """One subscription. Registers itself with queue and channel."""

    owner: Any
    channel: Channel
    queue: Queue
    tag: bytes
    no_ack: bool
    prefetch_max: int  # 0 = no limit
    priority: int
    unacked_count: int
    active: bool  # False while another one is the single active consumer
    delivered: int
    labelled: bool  # settable; deliveries say, instead of consumer tag and delivery tag, producer (8 octets; none if it
    # is 0) and number of the message: for consumers with no_ack
    identified: bool  # settable; deliveries end with sequence and term of the message; not of streams, nor with no_ack
    def __init__(
        self, channel: Channel, queue: Queue, tag: bytes, no_ack: bool, prefetch_max: int, priority: int, owner: Any
    ) -> None: ...
    def cancel(self) -> None: ...  # leaves queue and channel; its unacked messages stay with the channel
    # Of a stream; ValueError of others. It rests until `seek`. Deliveries carry x-stream-offset in their headers.
    @property
    def next_offset(self) -> int: ...  # where it goes on; -1 before `seek`, and of others
    def seek(self, offset: int, filters: Sequence[bytes] = (), match_unfiltered: bool = False) -> None:
        """Reads from this offset on, or the first one after it; once, before it has got anything. With filters only
        messages whose x-stream-filter-value is one of these strings, or, if so wanted, that have none."""
    def read_from(self, chunk: Chunk) -> None:
        """The chunk with the first message that is not before next_offset; the open one, too. If it is not, it is
        wanted again. Does nothing if none is wanted (any more)."""
