"""Every limit of the broker by name, and the relations between them.

Configurable limits have these defaults; limits that the protocol fixes are marked. The assertions at the end are part
of the contract: a change that breaks one breaks the broker.
"""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Fixed by AMQP 0-9-1.
FRAME_OVERHEAD_BYTES: Final = 8
"""Type, channel and size before a frame's payload, and the end octet after it."""
FRAME_BYTES_MIN: Final = 4096
"""No peer may request smaller frames."""
SHORT_STRING_BYTES_MAX: Final = 255
CHANNEL_ID_MAX: Final = 65535
REPLY_TEXT_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
ROUTING_KEY_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
EXCHANGE_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
VHOST_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
PRIORITY_MAX: Final = 255

# The broker's proposal in connection.tune, as in RabbitMQ.
FRAME_BYTES_MAX: Final = 128 * KIB
CHANNEL_MAX: Final = 2047
HEARTBEAT_S: Final = 60

# Messages and their properties.
MESSAGE_BYTES_MAX: Final = 128 * MIB
FIELD_TABLE_DEPTH_MAX: Final = 64
"""Deeper nested tables and arrays are rejected; x-death needs three levels."""

INCOMPLETE_MESSAGES_MAX: Final = 2
"""Incomplete messages of one connection, on all its channels, take at most as much as this many of the largest, with a
frame for the header of each: the parts of an interrupted read must fit as well."""
INCOMPLETE_MEMORY_PARTS: Final = 4
"""Incomplete messages of all connections take at most the memory watermark divided by this, or the limit of one
connection, if that is more. Beyond it the connection with the most is closed."""
INCOMPLETE_PER_USER_BYTES_MAX: Final = 1024 * MIB
"""Incomplete messages of one user's connections; or the limit of one connection, if that is more."""

# The life of a connection.
HANDSHAKE_FRAME_BYTES_MAX: Final = 8192
"""The frame limit before tune-ok; long tokens for a login have to fit."""
HANDSHAKE_MS_MAX: Final = 10_000
"""From accept to connection.open; afterwards heartbeats check the peer."""
HANDSHAKE_READ_BYTES: Final = 16 * KIB
"""Bytes of one read before the connection is open."""
HANDSHAKE_HELD_BYTES_MAX: Final = 64 * KIB
"""Bytes that a client may send ahead while the broker decides about its login or its vhost."""
HANDSHAKES_MAX: Final = 2048
"""Connections that are not open yet. Further ones wait in the backlog of the system, or TCP retries them."""
HANDSHAKES_PER_STEP_MAX: Final = 32
"""Handshakes that continue in one step before the broker handles other work, above all other brokers."""
DEPARTURES_PER_STEP_MAX: Final = 32
"""Lost connections that are cleaned up in one step before the broker handles other work."""
DROPS_PER_TICK_MAX: Final = 128
"""Connections that have timed out and are dropped in one tick: the rest is dropped a moment later."""
CROWDED_HANDSHAKE_MS_MAX: Final = 5_000
"""If there is no room for another handshake, a handshake that has taken this long, and waits for the client, is
dropped."""
CLOSE_OK_WAIT_MS_MAX: Final = 30_000
"""How long a close that the broker sent waits for its close-ok before the socket is dropped."""
LINGER_MS: Final = 2_000
"""How long a closed connection's socket waits for the client to close first."""
TLS_LINGER_MS: Final = 250
"""How long the socket of a TLS connection lingers before it is ended, after which nothing can be received from the
client."""
HEARTBEATS_MISSED_MAX: Final = 2
"""A peer that has been silent for this many heartbeat intervals counts as gone."""

LOGIN_PASSWORDS_WAITING_MAX: Final = 4
"""Different passwords for one user from one network that are not decided yet: a login with another one is refused at
once. So the last of them is decided before its handshake takes too long."""
STOP_MS_MAX: Final = 20_000
"""A signal to stop ends the process within this time, whatever state it is in, unless configured otherwise."""

# Memory of one connection.
DECODED_PER_PASS_BYTES_MAX: Final = 256 * KIB
"""Methods of one user's clients, other than publishes and settlements, in one pass of the loop. Beyond it none of these
clients is read from until the next pass, and those that have sent some take turns."""
OUTGOING_HIGH_BYTES: Final = 1 * MIB
"""Deliveries to a connection stop while more than this waits in its outgoing buffer."""
OUTGOING_LOW_BYTES: Final = 256 * KIB
"""Deliveries start again once less than this waits."""
READ_CHUNK_BYTES: Final = 256 * KIB
"""Maximum bytes of one read from a socket."""

# Leases of queues.
LEASES_MAX: Final = 1024
"""Leases at a time, of all queues."""
LEASES_PER_USER_MAX: Final = 256
"""Leases of one user at a time, unless configured otherwise."""
LEASE_NAME_BYTES_MAX: Final = 200
LEASE_MESSAGES_MAX: Final = 1_000_000
"""Messages of one lease that are not yet released."""
LEASE_BYTES_MAX: Final = 1024 * MIB
"""Size of the messages of one lease that are not yet released."""
LEASE_MOVE_MESSAGES_MAX: Final = 16_384
"""Messages that one request moves at most, so that no batch takes long; a client requests more again."""
LEASE_MOVE_BYTES_MAX: Final = 8 * MIB
"""Size of the messages that one request moves at most, or that are returned in one batch."""
LEASE_TIMEOUT_MS_MIN: Final = 1_000
LEASE_TIMEOUT_MS_MAX: Final = 7 * 24 * 3600 * 1_000
LEASE_RETRY_MS: Final = 1_000
"""Time until the pages of an ending lease are requested again, if the disk has not returned them."""

# The data port, unless configured otherwise; fixed limits are in `node.data.limits`.
DATA_CONNECTIONS_PER_USER_MAX: Final = 512
"""Half of the limit for all users."""
DATA_PER_USER_BYTES_MAX: Final = 64 * MIB
"""Memory for large requests of one user, half of the limit for all; the largest request always fits."""
DATA_REQUEST_MS_MAX: Final = 120_000
"""From the first byte of a request to its last; time in which the broker does not read is not counted."""

# The HTTP API, unless configured otherwise; fixed limits are in `admin.limits` and `runtime.http`.
HTTP_CONNECTIONS_MAX: Final = 1000
HTTP_CONNECTIONS_PER_NETWORK_MAX: Final = 250
"""From one IPv4 address, or the /64 of an IPv6 address. The loopback counts as three networks, because a proxy on this
machine may stand for many clients."""
HTTP_REQUESTS_PER_USER_MAX: Final = 100
"""Requests of one user that are not answered yet."""
HTTP_BYTES_MIN: Final = 20 * MIB
"""The largest body or answer always fits."""
HTTP_PER_USER_BYTES_MAX: Final = 2 * HTTP_BYTES_MIN
"""Memory for bodies and answers of one user, half of the limit for all."""
HTTP_BYTES_MAX: Final = 4 * HTTP_BYTES_MIN

# Memory of one broker.
CONNECTIONS_MAX: Final = 65_536
CONFIGURATION_BYTES_MAX: Final = 256 * MIB
"""The configuration that all brokers of a cluster share, in its snapshot form: some million queues."""
TERMS_REMEMBERED: Final = 3
"""Roots for which the start of their message numbers is recorded; for older ones it is less exact which messages were
lost."""
PRODUCERS_REMEMBERED_MAX: Final = 100_000
"""Channels of other brokers' clients whose last publish numbers the log records. Beyond it those that were silent for
the longest are dropped; a publish that is sent again for one of them, after a root crash, counts as new."""
PRODUCER_REMEMBERED_MS: Final = 3_600_000
"""Such channels are dropped when they were silent for this time. A long time in which no such channel published does
not count: a broker with unconfirmed publishes waits for a root as long as its client does, and then sends them
again."""
NAMED_PRODUCERS_MAX: Final = 10_000
"""Named publishers with numbered messages that are recorded, unless configured otherwise. Beyond it the one that was
silent for the longest is dropped, and a message that it sends again counts as new."""
NAMED_PRODUCERS_PER_USER_MAX: Final = 5_000
"""Named publishers of one user; beyond it the user's own that was silent for the longest is dropped."""
NAMED_PRODUCERS_PER_USER_BYTES_MAX: Final = 32 * MIB
"""An estimate of the memory of one user's named publishers: gaps between the numbers take some."""
NAMED_PRODUCER_AGE_MS: Final = 24 * 3_600_000
"""A named publisher that was silent for this time is dropped."""
PRODUCER_NAME_BYTES_MAX: Final = 255
PRODUCER_SEQUENCE_MAX: Final = 2**63 - 1
PRODUCER_RANGES_MAX: Final = 512
"""For a publisher with gaps between its numbers this many runs without a gap are recorded, the newest; sending an
earlier message again is an error, since it is unknown whether it arrived."""
PRODUCER_ODD_MAX: Final = 512
"""Numbers of a publisher that were refused, and that it may send again; the newest are recorded."""
PRODUCER_CONNECTIONS_FENCED_MAX: Final = 16
"""Connections that are recorded as replaced by a newer connection of the same producer."""
PRODUCERS_FORGOTTEN_PER_ENTRY_MAX: Final = 1_000
PRODUCERS_PER_CONNECTION_CACHED_MAX: Final = 1_024
STAGED_PART_BYTES_MAX: Final = 8 * MIB
"""Size of a part of staged publishes; a part is published in one step."""
STAGED_BATCH_MAX: Final = 2**53
"""The highest number of a batch: microseconds since 1970 fit, and it is exact in every number format."""
STAGED_PARTITION_MAX: Final = 2**31 - 1
STAGED_PARTS_UNCOMMITTED_MAX: Final = 4
"""Parts that are being published and wait for their commit."""
STAGED_FAILURES_MAX: Final = 3
"""How often an unexpected exception may end an attempt to publish a batch, before the broker sets the query aside."""
STAGED_FAILED_BATCHES_MAX: Final = 1_000
"""Batches whose failures the broker counts; it forgets the first."""
STAGED_ATTEMPTS_MAX: Final = 10_000
"""Attempts that have staged something and are not published."""
STAGED_ATTEMPTS_PER_USER_MAX: Final = 5_000
"""Attempts of one user that have staged something and are not published, unless configured otherwise."""
STAGED_PER_USER_BYTES_MAX: Final = 16 * 1024 * MIB
"""Staged bytes of one user's attempts that are not published, unless configured otherwise."""
STAGED_LEFT_ALONE_MS: Final = 6 * 3_600_000
"""An attempt that has staged nothing for this time, and was not committed, is dropped."""
STAGED_QUERIES_MAX: Final = 10_000
"""Queries whose last batch is recorded; beyond it the one that was silent for the longest is dropped, and a batch that
it commits again is published again."""
STAGED_QUERIES_PER_USER_MAX: Final = 5_000
"""Queries of one user; beyond it the user's own that was silent for the longest is dropped."""
STAGED_QUERY_AGE_MS: Final = 30 * 24 * 3_600_000
"""A query that was silent for this time is dropped."""
STAGED_QUERIES_FORGOTTEN_PER_ENTRY_MAX: Final = 1_000
STAGED_UNROUTABLE_QUERIES_MAX: Final = 1_000
"""Queries for which the root counts unroutable messages."""
REMOVALS_DEFERRED_MS_MAX: Final = 10
"""How long the log's entry about removed messages may wait for an entry that a client waits for."""
REMOVALS_DEFERRED_MAX: Final = 1_000
"""Records of removed messages that wait; with more of them the entry is written at once."""
RECEIPT_WAIT_MS: Final = 5_000
"""A broker with private queues reports after each batch what has come out of its outlet. The root does not wait for a
broker without a report for this time: then confirms mean the same as for a disconnected broker."""
ROUTE_PLANS_CACHED_MAX: Final = 131_072
"""Route plans per vhost, at about half a KiB each; a full cache is cleared."""
PAGING_BYTES: Final = 64 * MIB
"""Memory for ready messages; beyond it those that are far from being delivered are moved to disk."""
STREAM_CHUNK_BYTES: Final = 1 * MIB
"""Messages of a stream are stored and read in chunks; the next chunk begins when one has this size,"""
STREAM_CHUNK_AGE_MS: Final = 600_000
"""or when its first message is this old: each chunk takes some memory, and readers do not wait for its end."""
STREAM_CHUNKS_PER_AGE: Final = 8
"""Chunks within the retention time of a stream, so that expired messages are removed soon."""
STREAM_CHUNK_AGE_MS_MIN: Final = 1_000
STREAM_SEGMENT_BYTES: Final = 500_000_000
"""Size of the segments that retention removes, unless the stream sets another, as in RabbitMQ."""
STREAM_SEGMENT_BYTES_MAX: Final = 3_000_000_000
STREAM_UNARCHIVED_BYTES_MAX: Final = 100_000_000_000
"""Maximum size of a stream that waits for its archive, unless the stream sets another: beyond it the oldest segments
are removed."""
STREAM_CACHE_BYTES_MAX: Final = 32 * MIB
"""Chunks of all streams that are cached for readers."""
STREAM_AHEAD_BYTES_MAX: Final = 8 * MIB
"""A chunk is read ahead if it and the one before it take no more: otherwise it would evict that one before it is
read."""
STREAM_OFFSET_MAX: Final = 2**63 - 1
STREAM_TIME_S_MAX: Final = (2**63 - 1) // 1_000_000
"""Message times are microseconds in 63 bits: the latest second that a reader of a stream may request."""
STREAM_STORED_OFFSETS_MAX: Final = 1024
"""Names of stored offsets per stream."""
STREAM_STORED_OFFSETS_PER_USER_MAX: Final = 256
"""Names of stored offsets of one user, unless configured otherwise."""
STREAM_STORED_OFFSETS_PER_USER_TOTAL_MAX: Final = 10_000
"""Names of stored offsets of one user in all streams together."""
TRACE_BATCH_BYTES: Final = 256 * KIB
"""The traced events of a vhost are written when they reach this size,"""
TRACE_BATCH_AGE_MS: Final = 500
"""or when the first of them is this old: a crash loses at most this much."""
TRACE_HELD_BYTES_MAX: Final = 4 * MIB
"""Events of one vhost that wait to be written; further ones are dropped, and counted."""
TRACE_BATCHES_UNCOMMITTED_MAX: Final = 4
"""Written batches of one vhost that wait for their commit: the next one waits, too."""
TRACE_NOTICES_MAX: Final = 256
"""Events of the cluster that wait, in the same way."""
TRACE_STREAM_BYTES_MAX: Final = 1024 * MIB
"""Size of the stream of traces, unless a client has declared another one; the oldest segments are removed."""
TRACE_STREAM_SEGMENT_BYTES: Final = 64 * MIB
TRANSACTION_BYTES_MAX: Final = 256 * MIB
"""Uncommitted publishes of a channel."""
TRANSACTION_PER_CONNECTION_BYTES_MAX: Final = 256 * MIB
"""Uncommitted publishes of all channels of one connection, unless configured otherwise."""
TRANSACTION_PER_USER_BYTES_MAX: Final = 512 * MIB
"""Uncommitted publishes of all connections of one user."""
TRANSACTION_MEMORY_PARTS: Final = 4
"""Uncommitted transactions of all connections take at most the memory watermark divided by this, those of one user half
of that."""
CONSUMER_TIMEOUT_MS: Final = 30 * 60 * 1000
"""A delivery unacknowledged for longer closes its channel."""
DELAY_MS_MAX: Final = 2**32 - 1
"""The longest x-delay of a delayed message."""
EXPIRATION_MS_MAX: Final = 2**53
"""The longest TTL: far beyond 2^27 seconds, and still exact in every number format."""
EXCHANGE_HOPS_MAX: Final = 255
"""Exchange-to-exchange bindings are followed at most this deep."""

# Settings of administrators.
PATTERN_BYTES_MAX: Final = 1024
"""Size of the regular expressions in permissions and policies, as in RabbitMQ 4."""
PATTERN_STATES_MAX: Final = 512
"""A character or a repetition of one takes a state; `a{5}` takes more than five."""
PATTERN_STEPS_CACHED_MAX: Final = 1024
PATTERNS_CACHED_MAX: Final = 1024
PERMISSION_ANSWERS_CACHED_MAX: Final = 4096
"""For one user in one vhost, for each right."""
USERS_MAX: Final = 100_000
USER_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
PASSWORD_BYTES_MAX: Final = 4096
TAGS_MAX: Final = 32
TAG_BYTES_MAX: Final = 255
VHOSTS_MAX: Final = 10_000
DESCRIPTION_BYTES_MAX: Final = 4096
POLICIES_PER_VHOST_MAX: Final = 1000
"""A declare matches the patterns of all of them."""
POLICY_NAME_BYTES_MAX: Final = SHORT_STRING_BYTES_MAX
POLICY_DEFINITION_BYTES_MAX: Final = 16 * KIB
TOPIC_PERMISSIONS_PER_USER_MAX: Final = 1000
"""For one vhost."""

assert FRAME_BYTES_MIN <= FRAME_BYTES_MAX
assert READ_CHUNK_BYTES <= DECODED_PER_PASS_BYTES_MAX, "one read is not too much"
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
