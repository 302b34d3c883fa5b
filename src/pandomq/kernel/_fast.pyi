"""The per-message work of a broker, in batches.

This is the contract of two twins: `_fast.pyx` (compiled, over C-level buffers) and `_plain.py` (the readable oracle).
Both give the same bytes, the same log records and the same events for the same calls; tests drive them in lockstep.

The kernel decides how bytes become runs of publishes and settlements, what a queue holds and in which order, which
consumer gets the next message, which delivery tag means which message, when a confirm may go out, and the bytes of
deliveries and confirms. It never reads a clock, a file or a socket; it does not route (it calls `Hooks.publish` and
caches the plan), does not build dead letters, and does not know users, vhosts or policies.

One *batch* is: any number of `Engine.publish`, `Engine.settle`, `Engine.enqueue` and queue calls; then the caller
handles `dead` and `returned`; then `Engine.deliver`; then `Engine.seal` gives the records for the log, `Engine.sealed`
names the index they got, and `Engine.committed` releases what waited for it. `now_ms` is the batch's time.

Messages that will not be delivered soon may leave memory as *pages*: once a batch, after `deliver`, `Engine.page_out`
gives their bytes, and `Engine.wanted` names those that are needed again, to be given back by `Engine.loaded` before
some later `deliver`, in any order. Paging has no other visible effect: an operation that needs a message that is not in
memory waits.

A *stream* is a queue that holds no messages: each message is appended to its open chunk, and is always logged. Its
consumers read chunks, each from its own offset, up to the committed end; settlements only return credit.
"""

from collections.abc import Sequence
from typing import Any, Final, final

from pandomq.kernel._fast_chunk import Chunk as Chunk
from pandomq.kernel._fast_inputs import DeliveryRun as DeliveryRun
from pandomq.kernel._fast_inputs import Message as Message
from pandomq.kernel._fast_inputs import PublishRun as PublishRun
from pandomq.kernel._fast_inputs import Scanner as Scanner
from pandomq.kernel._fast_inputs import SettleRun as SettleRun
from pandomq.kernel._fast_inputs import routing_of as routing_of
from pandomq.kernel._fast_queue import Queue as Queue
from pandomq.kernel._fast_trace import Trace as Trace
from pandomq.kernel.hooks import Hooks, ReplayHooks

KIND: Final[str]  # "fast" or "plain"

def crc32(data: bytes | bytearray | memoryview, value: int = 0, /) -> int:
    """The same CRC-32 as zlib.crc32; several times as fast where the processor supports it."""

def without_messages(entry: bytes) -> bytes:
    """Returns the commands of a log entry, with its time, without the messages: a broker that keeps the configuration
    but no messages applies this. Raises BadEntry."""

@final
class Plan:
    """The queues to which the messages of one (user, exchange, key) go. It is valid until the broker withdraws it."""

    @property
    def queues(self) -> Sequence[Queue]: ...
    @property
    def valid(self) -> bool: ...
    def __init__(self, queues: Sequence[Queue]) -> None: ...
    def withdraw(self) -> None:
        """Marks the plan as invalid and drops its references to queues, so that a cached plan does not keep queues
        alive."""

@final
class Routes:
    """Plans cached for one user in one vhost, shared by the user's sessions. A full cache is cleared."""

    def __init__(self, capacity: int) -> None: ...
    def put(self, routing: bytes, plan: Plan) -> None: ...
    def find(self, routing: bytes) -> Plan | None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int: ...

@final
class Page:
    """A run of ready messages of one queue and one priority that are not in memory; the caller keeps their bytes. The
    kernel keeps an index of them (sequences, sizes, and which have left the queue), so that they can be counted, purged
    and dropped."""

    owner: Any  # the caller's reference to where the bytes are
    queue: Queue
    count: int  # messages that are still in the queue; 0 for a page that is in Engine.freed
    size_bytes: int  # size of their bodies
    def index(self) -> tuple[bytes, bytes] | None:
        """Returns what a snapshot has to hold of the page, for Queue.reinstate_page: the messages that are logged and
        still in the queue; None if there are none. The first part never changes and is shared, not copied; it takes up
        to 8 bytes a message (none if sequences are consecutive and sizes are equal). The second part takes at most one
        bit a message, nothing while all messages are there, and also holds the keys of the messages in queues with a
        last_value_key."""

@final
class Engine:
    """All queues and sessions of one broker.

    The caller empties eight lists:
    `dead`: queue, message, reason, delivery count of messages that died in queues with dead_letters.
    `returned`: channel, message, flags of mandatory messages that are unroutable; basic.return is written before
    `seal`.
    `waiting_for_time`: queues whose first message has a deadline before the one their timer was armed for, if it was
    armed at all; Queue.timer_armed is False for them. A queue may be named twice.
    `wanted`: pages whose bytes are needed, each once, in the order in which they are needed.
    `numbered`: channels with a producer whose publishes are in the batch's entry, each once a batch; the caller empties
    it before `seal`.
    `freed`: pages that are gone for good, loaded or with all their messages. A page may be in both; loading a page that
    is gone does nothing.
    `full_chunks`: chunks that will not grow any more, in order for each stream; they may hold uncommitted messages.
    `wanted_chunks`: consumers of streams that need a chunk, each once, until Consumer.read_from brings it.
    """

    term: int  # stamped on every message enqueued from now on
    commit_index: int
    replicated: bool  # several brokers keep the log: logged queues log every message, but local ones log none
    time_us: int  # settable: the time of events in traces, in microseconds since 1970
    prompt: bool  # until `sealed`: at least one publish of the batch is confirmed when its entry is received
    dead: list[tuple[Queue, Message, int, int]]
    returned: list[tuple[Channel, Message, int]]
    waiting_for_time: list[Queue]
    wanted: list[Page]
    freed: list[Page]
    numbered: list[Channel]
    full_chunks: list[tuple[Queue, Chunk]]
    wanted_chunks: list[Consumer]
    held_bytes: int  # bodies and headers of all messages in queues or unacked; each message counts once
    held_messages: int
    # Paging. A message in memory counts its header, its body and constants.MESSAGE_OVERHEAD_BYTES, per queue.
    paging_bytes: int  # limit of the memory for ready messages; 0: no limit, and no pages
    page_bytes: int  # a page ends with the message that brings its headers and bodies to this size
    page_messages: int  # or with this number of messages
    ready_bytes: int  # memory that ready messages take, as of the last deliver, page_out or loaded
    # Counters since start.
    published: int  # messages from publishers, on open channels
    unroutable: int
    delivered: int
    redelivered: int
    acked: int
    confirmed: int  # confirmed positively
    @property
    def changes(self) -> int:
        """Increases with every change of queues, of what consumers hold, and of the batch's entry; the amount has no
        meaning."""
    def __init__(self, hooks: Hooks) -> None: ...
    def publish(self, session: Session, run: PublishRun, now_ms: int) -> None: ...
    def fan_out(self, routes: Routes, owner: Any, run: DeliveryRun, seen: dict[int, int], now_ms: int) -> None:
        """Puts the messages that the root delivered to a labelled consumer into the local queues that the plans of
        `routes` name. `seen` maps each producer to its last number, ordered by the time of the last publish; messages
        with a number that is not higher are skipped. Calls Hooks.fan_out(owner, message) for a special message or
        without a valid plan."""
    def mirror(self, session: Session, run: DeliveryRun, now_ms: int) -> None:
        """Puts a message that the root delivered into the mirror queue that the channel's consumer of that tag reads.
        If there is none, the message is nacked to the uplink with requeue (so a consumer must stay until the root has
        answered its cancel)."""
    def settle(self, session: Session, run: SettleRun, now_ms: int) -> None: ...
    def settle_one(
        self, channel: Channel, method_id: int, tag: int, multiple: bool, requeue: bool, now_ms: int
    ) -> None: ...
    def enqueue(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int
    ) -> bool:
        """Puts the message into every queue (the caller passes each queue at most once). With no queue the message is
        unroutable, and goes to `returned` if MANDATORY. Writes one log record for the logged queues if the message is
        persistent, or for any message if `replicated`. Returns False if a queue refused it; then, with a channel in
        CONFIRM mode, its last counted publish will be nacked."""
    def prepare(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int, keep: bool
    ) -> tuple[bool, list[tuple[Queue, int, int, int]]]:
        """Like enqueue, for a message that must not be visible before it is committed. The message gets its places
        (queue, sequence, term, deadline) and its log record (always with `keep`); `admit` must follow and puts it into
        the queues. Returns False if a queue refused it. While `replicated`, local queues are not mixed with others:
        they get a message of their own (Message.unkept_copy)."""
    def admit(self, message: Message, places: Sequence[tuple[Queue, int, int, int]]) -> None:
        """Puts the message into the queues at the places that `prepare` returned; may be called between batches."""
    def forward(self, channel: Channel, message: Message, flags: int) -> None:
        """Writes a publish to the uplink of the channel's session, if it has one. In CONFIRM mode it is counted, and
        kept until it is confirmed. `publish` itself forwards each message that has a plan, after putting it into the
        plan's queues (then without MANDATORY); Hooks.publish handles the others."""
    def relay_confirms(self, session: Session, run: SettleRun) -> None:
        """Passes the root's confirms of publishes that this session forwarded to its client, unless the client has them
        already."""
    def refuse(self, channel: Channel) -> None: ...  # its last counted publish will be nacked
    def repeat(self, channel: Channel) -> None:
        """Notes that the channel's last counted publish took effect earlier: its confirm waits for all entries up to
        this batch's."""
    def deliver(self, now_ms: int) -> None:
        """For each active queue: puts requeued messages back in their places, removes expired ones, and delivers the
        rest."""
    def page_out(self, bytes_max: int) -> list[tuple[Page, bytes]]:
        """Takes messages out of memory until ready_bytes is not above paging_bytes, no queue has enough for a page, or
        the bytes reach bytes_max; messages that will be delivered last go first. The caller keeps the bytes and can
        return them at any time. Does nothing, and quickly, below paging_bytes."""
    def loaded(self, page: Page, data: bytes) -> None:
        """Takes the bytes of a page that was wanted. The page is freed once the pages before it are loaded, too. Raises
        ValueError and changes nothing if the bytes are not those that page_out returned."""
    @property
    def active(self) -> bool: ...  # some queue could deliver more now (a session's output was taken in the meantime)
    def log_command(self, command: bytes) -> None:
        """Adds a RECORD_COMMAND to the batch's records, in order with the others."""
    def restore(self, message: Message, places: Sequence[tuple[Queue, int, int]], now_ms: int) -> None:
        """Replay: puts a message into queues at places given as (queue, sequence, term), without logging and without
        limits."""
    def replay(self, entry: bytes, term: int, hooks: ReplayHooks) -> None:
        """Applies a log entry: the engine restores and drops messages, the hooks do everything else. Raises
        records.BadEntry and applies nothing if the entry is malformed. Pages may leave memory between entries."""
    @property
    def deferrable(self) -> int:
        """The number of records, if the batch may also be sealed with a later one: it has only removed messages, and
        no client or queue of the kernel waits for its entry. 0 otherwise."""
    def seal(self, now_ms: int) -> bytes | None:
        """Returns the batch's records as one log entry (see records.py), or None if nothing has to survive."""
    def sealed(self, index: int) -> None:
        """Notes the index of the sealed entry (0: there was none). Confirms of this batch wait for it if they need it,
        and always for earlier confirms of their channel; the others are written now. A confirm also waits for the entry
        that holds an earlier ack of its channel, since the confirm proves that ack to the client. A batch that was
        `deferrable` and not sealed goes on."""
    def received(self, index: int) -> None:
        """Enough brokers have the entries up to this index in memory. Writes, out of order, the confirms of publishes
        that need no more: they are not persistent, entered no `synced` queue, and follow no uncommitted ack or reply on
        their channel."""
    def committed(self, index: int) -> None:
        """Writes the confirms that waited for indexes up to this one, in few frames (multiple); writes nacks one by
        one."""
    batch: int  # read only: the number of the current batch; the first is 1
    def outlets_received(self, batch: int) -> None:
        """Everything that batches up to this one put into outlets has come out at the other ends: confirms that waited
        for it go out, if the log allows it."""
    def take_dirty(self) -> list[Session]:
        """Returns the sessions that have outgoing bytes, each once, in the order in which they got them, and clears the
        list."""

@final
class Session:
    """One client connection: its channels and its outgoing bytes."""

    owner: Any
    routes: Routes
    uplink: Session | None  # where publishes and mirror settlements of this session go; None: this broker serves it
    trace: Trace | None  # settable: records unroutable messages, and when publishes are confirmed
    label: bytes  # settable: the session's name in traces
    frame_max: int
    out_bytes_max: int  # consumers of this session rest while more than this waits in it
    writable: bool  # read only; see pause and resume
    pending_bytes: int  # read only
    def __init__(self, engine: Engine, owner: Any, routes: Routes, frame_max: int, out_bytes_max: int) -> None: ...
    def channel(self, number: int) -> Channel | None: ...
    def write(self, data: bytes) -> None: ...
    def write_content(self, number: int, method: bytes, message: Message) -> None:
        """Writes a method frame with this payload, the content header, and the bodies split at frame_max."""
    def take(self) -> bytes:
        """Returns the outgoing bytes. Consumers that rested because of them are ready again if the session is
        writable."""
    def pause(self) -> None: ...  # the peer reads too slowly: its consumers rest
    def resume(self) -> None: ...
    def close(self, now_ms: int) -> None:
        """Closes all channels; later writes to the session are dropped."""

@final
class Channel:
    """Publish numbers, consumers and the unacked window of one channel."""

    owner: Any
    session: Session
    number: int
    open: bool  # False: input on it is skipped silently (the broker closed it)
    mode: int
    prefetch_max: int  # for all consumers together (basic.qos global); 0 = no limit; set with set_prefetch
    @property
    def unacked_count(self) -> int: ...
    @property
    def published_count(self) -> int: ...  # the last publish number counted (CONFIRM)
    @property
    def unconfirmed_count(self) -> int: ...
    producer: int  # settable; if not 0, publishes that are counted here carry it and their number
    repeats_through: int  # settable; with a producer, publishes up to this number always go to Hooks.publish
    def set_published(self, count: int) -> None:
        """Sets the number of the last publish; the next one that is counted follows it. ValueError if any is
        unconfirmed."""
    @property
    def kept_count(self) -> int: ...  # forwarded publishes kept to be sent again: all from the first unconfirmed one on
    @property
    def kept_bytes(self) -> int: ...  # size of their headers and bodies; Engine.held_bytes includes them
    @property
    def first_kept(self) -> int: ...  # its number; published_count + 1 if none is kept
    def come_back(self, message: Message) -> None:
        """The root has returned this message. It is the first equal one among the kept publishes after the last
        returned one."""
    def resend(self) -> None:
        """Writes the kept publishes to the uplink again, in order. Publishes that were confirmed are not confirmed
        again; those that were confirmed or returned are no longer mandatory."""
    def __init__(self, session: Session, number: int, owner: Any) -> None: ...  # registers itself with the session
    def set_prefetch(self, prefetch_max: int) -> None: ...
    def owe(self, consumer: Consumer | None, count: int) -> None:
        """The client holds `count` more (or fewer) unacked messages of an earlier root than this channel knows. They
        use the channel's credit, and the consumer's credit if one is given."""
    def hold(self) -> None:
        """A reply waits for this batch's entry, or for the last entry if the batch has none. Until the release nothing
        is delivered on the channel; later publishes are confirmed after that reply, and their returns are sent in order
        with the replies. Called again for each reply that waits."""
    def release(self) -> None: ...
    def hold_confirms(self, number: int) -> None:
        """Publishes from this number on are not confirmed before the next call; 0 holds none."""
    def consumers(self) -> list[Consumer]: ...
    def outstanding(self, tag: int, multiple: bool) -> list[int]:
        """Returns the tags that a settlement would concern; [] if the tag is unknown."""
    def unacked(self) -> list[tuple[Queue, int, int, int, int, bool, Message]]:
        """Returns the unsettled deliveries in order of the tags: the queue, then the fields of Queue.snapshot."""
    def place_of(self, tag: int) -> tuple[int, int]:
        """Returns sequence and term of the message that is unacked under this tag; zeros if the tag is unknown."""
    def recover(self, now_ms: int) -> None:
        """Requeues everything unacked."""
    # Settlements by place: queue, sequence and term.
    @property
    def unproven_count(self) -> int: ...  # kept settlements of mirrored messages, see Queue.configure
    @property
    def settled_number(self) -> int: ...  # number of settlements ever kept
    def prove(self, number: int) -> None:
        """The root's log has the settlements up to this number: the channel drops them."""
    def settle_again(self) -> None:
        """Writes all kept settlements to the uplink, as rows of SETTLE (see constants.py)."""
    def settle_place(self, queue: Queue, sequence: int, term: int, method_id: int) -> int:
        """At the root: settles a ready message, logged. Returns ABSENT, SETTLED or PLACE_UNKNOWN. Later publishes of
        this channel are confirmed after that, as after an ack."""
    def settle_elsewhere(self, other: Channel, tag: int, method_id: int) -> bool:
        """Like `settle_place`, for a message that is unacked, on any channel. Its tag stays, but settling the tag only
        returns credit. Returns False if the tag is unknown."""
    def give_back(self, queue: Queue) -> int:
        """Removes the ready messages of a mirror queue, nacks them with requeue to the uplink, and returns their
        number."""
    def forget(self, queue: Queue) -> None:
        """Removes all unacked messages of this queue without any other effect: their tags are unknown from now on."""
    def forget_tag(self, tag: int) -> bool: ...  # the same for one tag; False if it is unknown
    @property
    def oldest_delivery_ms(self) -> int: ...  # when the oldest unacked message was delivered; NEVER_MS if none
    def close(self, now_ms: int) -> None:
        """Removes the channel from its session and its consumers from their queues; unacked messages go back to their
        queues."""

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
    # settable; for consumers with no_ack: deliveries carry, in place of consumer tag and delivery tag, the producer (8
    # octets; none if it is 0) and the number of the message
    labelled: bool
    identified: bool  # settable; deliveries end with sequence and term of the message; not for streams, nor with no_ack
    def __init__(
        self, channel: Channel, queue: Queue, tag: bytes, no_ack: bool, prefetch_max: int, priority: int, owner: Any
    ) -> None: ...
    def cancel(self) -> None: ...  # leaves queue and channel; its unacked messages stay with the channel
    # Only for consumers of a stream (ValueError for others). Such a consumer rests until `seek`. Its deliveries carry
    # x-stream-offset in their headers.
    @property
    def next_offset(self) -> int: ...  # the offset it reads next; -1 before `seek`, and for consumers of other queues
    def seek(self, offset: int, filters: Sequence[bytes] = (), match_unfiltered: bool = False) -> None:
        """Starts reading at this offset, or at the first message after it; once, before anything is delivered. With
        filters, only messages are delivered whose x-stream-filter-value is one of these strings and, with
        match_unfiltered, those that have none."""
    def read_from(self, chunk: Chunk) -> None:
        """Takes the chunk with the first message that is not before next_offset; it may be the open one. If it is
        another chunk, the consumer asks again. Does nothing if no chunk is wanted (any more)."""
