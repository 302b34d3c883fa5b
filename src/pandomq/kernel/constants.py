"""The numbers that both twins of the kernel and their callers share."""

from typing import Final

# Publish flags, as Hooks.publish sees them.
MANDATORY: Final = 1
IMMEDIATE: Final = 2
OVERSIZED: Final = 4
"""The body was longer than the scanner's limit and was skipped: message.body is empty, message.body_size has its
size."""
CONFIRMED_BEFORE: Final = 8
"""An earlier root has confirmed this publish. Another broker repeats it because of its number only; clients may not
set the bit."""
PUBLISH_BITS: Final = MANDATORY | IMMEDIATE | CONFIRMED_BEFORE
"""The flags that a basic.publish carries."""

# Message.special: why a message may not use a cached plan and must go to Hooks.publish.
SPECIAL_USER_ID: Final = 1
"""The message carries a user-id."""
SPECIAL_COPIES: Final = 2
"""Its headers hold CC or BCC."""
SPECIAL_REPLY_TO: Final = 4
"""Its reply-to begins with amq.rabbitmq.reply-to."""
SPECIAL_EXPIRATION: Final = 8
"""Its expiration is not a number of milliseconds in plain digits, or too large."""
SPECIAL_DELAY: Final = 16
"""Its headers hold x-delay."""
SPECIAL_MALFORMED: Final = 32
"""Its properties cannot be read."""
SPECIAL_PRODUCER: Final = 64
"""Its headers hold x-producer and x-sequence."""

# Channel.mode
NORMAL: Final = 0
CONFIRM: Final = 1
TRANSACTION: Final = 2
"""Each publish and each settlement goes to Hooks."""

# The behaviour of a full queue
DROP_HEAD: Final = 0
REJECT_PUBLISH: Final = 1
REJECT_PUBLISH_DEAD_LETTER: Final = 2
"""The message is refused, and goes to Engine.dead with MAXLEN."""

# Why a message is in Engine.dead
EXPIRED: Final = 0
REJECTED: Final = 1
MAXLEN: Final = 2
DELIVERY_LIMIT: Final = 3

# Kinds of log records (see records.py)
RECORD_ENQUEUE: Final = 1
RECORD_DEQUEUE: Final = 2
RECORD_COMMAND: Final = 3

NEVER_MS: Final = 2**63 - 1
"""A deadline that is never reached."""

# Paging
PAGE_BYTES: Final = 256 * 1024
"""Headers and bodies of a page, unless Engine.page_bytes is set."""
PAGE_MESSAGES: Final = 4096
"""Messages of a page at most, unless Engine.page_messages is set."""
PAGES_AHEAD: Final = 2
"""At most this many pages of one queue and priority are wanted at a time."""
MESSAGE_OVERHEAD_BYTES: Final = 256
"""Memory that a message takes beside its header and body: objects, its place in a queue."""

# Streams
CHUNK_BYTES: Final = 1 << 20
"""Content of a chunk, with CHUNK_ROW_BYTES for each message, unless Queue.configure sets another size: a message that
arrives when the size is reached is the first of the next chunk."""
CHUNK_AGE_MS: Final = 10_000
"""Maximum age of a chunk, counted from its first message, unless Queue.configure sets another."""
CHUNK_MESSAGES_MAX: Final = 65536
"""Messages of a chunk at most."""
CHUNK_ROW_BYTES: Final = 32
"""Bytes that a message takes in a chunk beside its own: its offset, its time, and where its parts end."""
READ_BURST: Final = 64
"""Messages that one reader of a stream gets before the next reader's turn."""

# Traces
TRACED_UNCONFIRMED_MAX: Final = 65536
"""Traced publishes of a channel that may wait for their confirms; the confirms of further ones are not traced."""

# Relays
MIRROR_SPAN_MAX: Final = 1 << 22
"""The channel remembers unsettled delivery tags of the root while they are no farther apart than this."""

# Settlements, by the method id of class basic.
ACK: Final = 80
REJECT: Final = 90
NACK: Final = 120
SETTLE: Final = 250
"""Between brokers only: settlements that name messages by their places. It holds a number that the root returns to the
front once the settlements are committed (0: no answer), and rows, each a queue id, sequence and term (u64) and the
method id (u8)."""
SETTLE_ROWS_MAX: Final = 160
"""This many rows fit into a frame of any size that can be negotiated."""

# The result of a settlement that names a message by its place
ABSENT: Final = 0
"""The message is not ready: it is gone, unacked, or another message has its number."""
SETTLED: Final = 1
PLACE_UNKNOWN: Final = 2
"""The message is not in memory, and the index of its page does not have the answer."""

# Kinds of frames.
METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE
"""The octet after each frame."""

BASIC: Final = 60
PUBLISH: Final = 40
RETURN: Final = 50
DELIVER: Final = 60
GET_OK: Final = 71
