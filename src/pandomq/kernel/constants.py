"""The numbers that both twins of the kernel and their callers share."""

from typing import Final

# Publish flags, as Hooks.publish sees them.
MANDATORY: Final = 1
IMMEDIATE: Final = 2
OVERSIZED: Final = 4
"""The body was longer than the scanner's limit and was skipped: message.body is empty, message.body_size tells."""

# Message.special: why a message may not take a remembered plan but must be looked at by Hooks.publish.
SPECIAL_USER_ID: Final = 1
"""It carries a user-id."""
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

# What a full queue does
DROP_HEAD: Final = 0
REJECT_PUBLISH: Final = 1
REJECT_PUBLISH_DEAD_LETTER: Final = 2
"""The message is refused, and given to Engine.dead with MAXLEN."""

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
"""A deadline that does not come."""

# Paging
PAGE_BYTES: Final = 256 * 1024
"""Headers and bodies of a page, unless Engine.page_bytes is set to something else."""
PAGE_MESSAGES: Final = 4096
"""Messages of a page at most, unless Engine.page_messages is set to something else."""
PAGES_AHEAD: Final = 2
"""So many pages of one queue and priority are wanted at most."""
MESSAGE_OVERHEAD_BYTES: Final = 256
"""What a message takes in memory beside its header and body: objects, its place in a queue."""

# Streams
CHUNK_BYTES: Final = 1 << 20
"""Content of a chunk, with CHUNK_ROW_BYTES for each message, unless Queue.configure says something else: the message
that comes when it is reached is the first of the next chunk."""
CHUNK_AGE_MS: Final = 10_000
"""The same for the time since its first message."""
CHUNK_MESSAGES_MAX: Final = 65536
"""Messages of a chunk at most."""
CHUNK_ROW_BYTES: Final = 32
"""What a message takes in a chunk beside its bytes: its offset, its time, and where its parts end."""
READ_BURST: Final = 64
"""So many messages at a time for one reader of a stream, then the next one has its turn."""

# Traces
TRACED_UNCONFIRMED_MAX: Final = 65536
"""So many traced publishes of a channel wait for their confirms; of more than that it is not traced when they come."""

# Relays
MIRROR_SPAN_MAX: Final = 1 << 22
"""The root's delivery tags that a channel has not settled are remembered while they are not farther apart than this."""

# Settlements, by the method id of class basic.
ACK: Final = 80
REJECT: Final = 90
NACK: Final = 120
SETTLE: Final = 250
"""Between brokers only: settlements that name messages by their places. A number that the front wants to hear again
once they are committed (0: it does not), and rows, each a queue id, sequence and term (u64) and the method id (u8)."""
SETTLE_ROWS_MAX: Final = 160
"""So many rows fit into a frame of any size that can be agreed on."""

# What became of a settlement that names a message by its place
ABSENT: Final = 0
"""It is not ready: gone, unacked, or another message has the number."""
SETTLED: Final = 1
PLACE_UNKNOWN: Final = 2
"""It is not in memory, and what is in memory of its page does not tell."""

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
