"""Every limit of the broker by name, and how they relate.

What a user may configure starts from these defaults; what the protocol fixes is marked so.
The assertions at the end are part of the contract: a change that breaks one breaks the broker.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Fixed by AMQP 0-9-1.
FRAME_OVERHEAD_BYTES: Final = 8
"""Type, channel and size before a frame's payload, and the end octet after it."""
FRAME_BYTES_MIN: Final = 4096
"""No peer may ask for frames smaller than this."""
SHORT_STRING_BYTES_MAX: Final = 255
CHANNEL_ID_MAX: Final = 65535
REPLY_TEXT_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
ROUTING_KEY_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
EXCHANGE_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
VHOST_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
PRIORITY_MAX: Final = 255

# What the broker proposes in connection.tune, as RabbitMQ does.
FRAME_BYTES_MAX: Final = 128 * KIB
CHANNEL_MAX: Final = 2047
HEARTBEAT_S: Final = 60

# Messages and what describes them.
MESSAGE_BYTES_MAX: Final = 128 * MIB
FIELD_TABLE_DEPTH_MAX: Final = 64
"""Tables and arrays nested deeper than this are refused; x-death needs three levels."""

INCOMPLETE_MESSAGES_MAX: Final = 2
"""Incomplete messages of one connection, on all its channels, take at most as much as this many of the largest, with a
frame for the header of each: whatever a read cuts in two must fit as well."""
INCOMPLETE_MEMORY_PARTS: Final = 4
"""Those of all connections take at most one of so many parts of the memory watermark, or what one connection may have,
if that is more. Past it the connection with the most is closed."""

# The life of a connection.
HANDSHAKE_FRAME_BYTES_MAX: Final = 8192
"""Before tune-ok no frame may be larger; long tokens for a login have to fit."""
HANDSHAKE_MS_MAX: Final = 10_000
"""From accept to connection.open; afterwards heartbeats watch the peer."""
HANDSHAKE_READ_BYTES: Final = 16 * KIB
"""What one read brings before the connection is open."""
HANDSHAKE_HELD_BYTES_MAX: Final = 64 * KIB
"""What a client may send ahead while the broker still decides about its login or its vhost."""
HANDSHAKES_MAX: Final = 2048
"""Connections that are not open yet. Those beyond wait in the backlog of the system, or try again as TCP does."""
HANDSHAKES_PER_STEP_MAX: Final = 32
"""How many of them go on between two looks at what else there is to do, other brokers above all."""
DEPARTURES_PER_STEP_MAX: Final = 32
"""The same for connections that were lost."""
DROPS_PER_TICK_MAX: Final = 128
"""And for those whose time is over: what comes on top is dropped a moment later."""
CROWDED_HANDSHAKE_MS_MAX: Final = 5_000
"""Where there is no room for another handshake, who has been at it for so long, and keeps the broker waiting, gives up
its place."""
CLOSE_OK_WAIT_MS_MAX: Final = 30_000
"""How long a close that the broker sent waits for its close-ok before the socket is dropped."""
LINGER_MS: Final = 2_000
"""How long a closed connection's socket waits for the client to hang up first."""
TLS_LINGER_MS: Final = 250
"""The same before the end of a TLS connection is said, after which nothing can be taken from the client any more."""
HEARTBEATS_MISSED_MAX: Final = 2
"""A peer that was silent for this many heartbeat intervals is gone."""

# Memory of one connection.
OUTGOING_HIGH_BYTES: Final = 1 * MIB
"""Deliveries to a connection stop while more than this waits in its outgoing buffer."""
OUTGOING_LOW_BYTES: Final = 256 * KIB
"""They start again once less than this waits."""
READ_CHUNK_BYTES: Final = 256 * KIB
"""What one read from a socket brings at most."""

# Leases of queues.
LEASES_MAX: Final = 1024
"""At a time, of all queues."""
LEASE_NAME_BYTES_MAX: Final = 200
LEASE_MESSAGES_MAX: Final = 1_000_000
"""Of one lease, not yet released."""
LEASE_BYTES_MAX: Final = 1024 * MIB
"""The same for their bodies."""
LEASE_MOVE_MESSAGES_MAX: Final = 16_384
"""One ask moves no more, so that no batch takes long: who wants more asks again."""
LEASE_MOVE_BYTES_MAX: Final = 8 * MIB
"""The same for their bodies; and for those that go back in one batch."""
LEASE_TIMEOUT_MS_MIN: Final = 1_000
LEASE_TIMEOUT_MS_MAX: Final = 7 * 24 * 3600 * 1_000
LEASE_RETRY_MS: Final = 1_000
"""After which messages of a lease that ends are wanted again, if the disk has not given them."""

# Memory of one broker.
CONNECTIONS_MAX: Final = 65_536
CONFIGURATION_BYTES_MAX: Final = 256 * MIB
"""What all brokers of a cluster know, as it is in a snapshot: some million queues."""
TERMS_REMEMBERED: Final = 3
"""Of so many roots it is known where their numbers began; what is said of older ones is less exact."""
PRODUCERS_REMEMBERED_MAX: Final = 100_000
"""Channels of clients of other brokers whose last publishes the log knows by number. Of those beyond it the ones that
were silent for the longest are forgotten; what is sent again for one of them, after the root died, counts as new."""
PRODUCER_REMEMBERED_MS: Final = 3_600_000
"""The same for who was silent for so long. A broker sends again, or gives up, within root_wait_ms."""
NAMED_PRODUCERS_MAX: Final = 10_000
"""Publishers that name themselves and number their messages: unless it is configured otherwise, so many are remembered.
Past it the one that was silent for the longest is forgotten, and what it sends again counts as new."""
NAMED_PRODUCER_AGE_MS: Final = 24 * 3_600_000
"""The same for who was silent for so long."""
PRODUCER_NAME_BYTES_MAX: Final = 255
PRODUCER_SEQUENCE_MAX: Final = 2**63 - 1
PRODUCER_RANGES_MAX: Final = 512
"""Of one that leaves gaps between its numbers so many runs without a gap are remembered, the newest; it is an error to
send again what was before them, since nobody can tell whether it came."""
PRODUCER_ODD_MAX: Final = 512
"""The same for its numbers that were refused, which it may send again."""
PRODUCER_CONNECTIONS_FENCED_MAX: Final = 16
"""Connections of which it is known that a newer one has taken their producer."""
PRODUCERS_FORGOTTEN_PER_ENTRY_MAX: Final = 1_000
PRODUCERS_PER_CONNECTION_CACHED_MAX: Final = 1_024
STAGED_PART_BYTES_MAX: Final = 8 * MIB
"""Of publishes that are staged; a part is published in one step."""
STAGED_PARTS_UNCOMMITTED_MAX: Final = 4
"""Parts that are being published, and wait for their commit."""
STAGED_ATTEMPTS_MAX: Final = 10_000
"""That have staged something, and are not published."""
STAGED_LEFT_ALONE_MS: Final = 6 * 3_600_000
"""An attempt that has staged nothing more for so long, and was not committed, is dropped."""
STAGED_QUERIES_MAX: Final = 10_000
"""Whose last batch is remembered; past it the one that was silent for the longest is forgotten, and what it commits
again is published again."""
STAGED_QUERY_AGE_MS: Final = 30 * 24 * 3_600_000
"""The same for who was silent for so long."""
STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX: Final = 1_000
RECEIPT_WAIT_MS: Final = 5_000
"""A broker with private queues says what has come out of its outlet after each batch. One that does not for so long is
not waited for: then confirms mean what they mean for a broker that is away."""
ROUTE_PLANS_CACHED_MAX: Final = 131_072
"""Route plans per vhost, at about half a KiB each; past it the cache starts anew."""
PAGING_BYTES: Final = 64 * MIB
"""What ready messages may take of memory before those that are far from being delivered leave it for the disk."""
STREAM_CHUNK_BYTES: Final = 1 * MIB
"""Messages of a stream are kept and read in chunks; the next one begins when one is as large as this,"""
STREAM_CHUNK_AGE_MS: Final = 600_000
"""or when its first message is as old as this: each chunk takes some memory, and readers do not wait for its end."""
STREAM_CHUNKS_PER_AGE: Final = 8
"""Of a stream that keeps messages for a time, so that what is too old can go soon."""
STREAM_CHUNK_AGE_MS_MIN: Final = 1_000
STREAM_SEGMENT_BYTES: Final = 500_000_000
"""What leaves a stream at a time, unless it says otherwise, as in RabbitMQ."""
STREAM_SEGMENT_BYTES_MAX: Final = 3_000_000_000
STREAM_UNARCHIVED_BYTES_MAX: Final = 100_000_000_000
"""A stream that waits for its archive is not larger than this, unless it says otherwise: then the oldest goes."""
STREAM_CACHE_BYTES_MAX: Final = 32 * MIB
"""Chunks of all streams that are kept in memory for whoever reads them, and will read them next."""
STREAM_AHEAD_BYTES_MAX: Final = 8 * MIB
"""A chunk is read ahead if it and the one before it take no more: else it would drive that out before it is read."""
STREAM_OFFSET_MAX: Final = 2**63 - 1
STREAM_STORED_OFFSETS_MAX: Final = 1024
"""Names under which offsets of one stream are stored."""
TRACE_BATCH_BYTES: Final = 256 * KIB
"""What was traced in a vhost is written when it takes as much as this,"""
TRACE_BATCH_AGE_MS: Final = 500
"""or when the first of it is as old as this: a broker that dies takes so much with it."""
TRACE_HELD_BYTES_MAX: Final = 4 * MIB
"""What waits to be written, of one vhost; what comes on top is dropped, and counted."""
TRACE_BATCHES_UNCOMMITTED_MAX: Final = 4
"""Batches of one vhost that were written, and wait for their commit: the next one waits, too."""
TRACE_NOTICES_MAX: Final = 256
"""Events of the cluster that wait, the same way."""
TRACE_STREAM_BYTES_MAX: Final = 1024 * MIB
"""Of the stream of traces, unless somebody has declared another one; the oldest segments go."""
TRACE_STREAM_SEGMENT_BYTES: Final = 64 * MIB
TRANSACTION_BYTES_MAX: Final = 256 * MIB
CONSUMER_TIMEOUT_MS: Final = 30 * 60 * 1000
"""A delivery unacknowledged for longer closes its channel."""
DELAY_MS_MAX: Final = 2**32 - 1
"""The longest x-delay of a delayed message."""
EXPIRATION_MS_MAX: Final = 2**53
"""The longest TTL: far beyond 2^27 seconds, and still exact in every number format."""
EXCHANGE_HOPS_MAX: Final = 255
"""Exchange-to-exchange bindings are followed at most this deep."""

# What administrators set.
PATTERN_BYTES_MAX: Final = 1024
"""Of the regular expressions in permissions and policies, as in RabbitMQ 4."""
PATTERN_STATES_MAX: Final = 512
"""A character or a repetition of one takes a state; `a{5}` takes five and some."""
PATTERN_STEPS_CACHED_MAX: Final = 1024
PATTERNS_CACHED_MAX: Final = 1024
PERMISSION_ANSWERS_CACHED_MAX: Final = 4096
"""Of one user in one vhost, for each right."""
USERS_MAX: Final = 100_000
USER_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
PASSWORD_BYTES_MAX: Final = 4096
TAGS_MAX: Final = 32
TAG_BYTES_MAX: Final = 255
VHOSTS_MAX: Final = 10_000
DESCRIPTION_BYTES_MAX: Final = 4096
POLICIES_PER_VHOST_MAX: Final = 1000
"""A declare tries the patterns of all of them."""
POLICY_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
POLICY_DEFINITION_BYTES_MAX: Final = 16 * KIB
TOPIC_PERMISSIONS_PER_USER_MAX: Final = 1000
"""In one vhost."""

assert FRAME_BYTES_MIN <= FRAME_BYTES_MAX
assert FRAME_BYTES_MAX <= READ_CHUNK_BYTES, "one read holds at least one whole frame"
assert FRAME_BYTES_MAX <= OUTGOING_LOW_BYTES < OUTGOING_HIGH_BYTES
assert CHANNEL_MAX <= CHANNEL_ID_MAX
assert TLS_LINGER_MS < LINGER_MS
assert FRAME_BYTES_MIN <= HANDSHAKE_FRAME_BYTES_MAX <= FRAME_BYTES_MAX
assert HANDSHAKE_FRAME_BYTES_MAX + FRAME_OVERHEAD_BYTES <= HANDSHAKE_READ_BYTES
assert 2 * HANDSHAKE_READ_BYTES < HANDSHAKE_HELD_BYTES_MAX, "two reads during the handshake are never too much"
assert HANDSHAKES_MAX * HANDSHAKE_HELD_BYTES_MAX <= 128 * MIB, "however many come, and whatever they send ahead"
assert CROWDED_HANDSHAKE_MS_MAX <= HANDSHAKE_MS_MAX
assert MESSAGE_BYTES_MAX <= TRANSACTION_BYTES_MAX
assert TRACE_BATCH_BYTES < TRACE_HELD_BYTES_MAX < MESSAGE_BYTES_MAX
assert EXPIRATION_MS_MAX >= 2**27 * 1000
assert 4 * STREAM_AHEAD_BYTES_MAX <= STREAM_CACHE_BYTES_MAX, "who reads ahead leaves room for others"
