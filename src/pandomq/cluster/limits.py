"""The limits of links between brokers: sizes and times."""

from typing import Final

from pandomq.limits import (
    FRAME_BYTES_MAX,
    FRAME_BYTES_MIN,
    HANDSHAKE_FRAME_BYTES_MAX,
    KIB,
    MESSAGE_BYTES_MAX,
    MIB,
    TRANSACTION_BYTES_MAX,
)
from pandomq.replica.limits import IN_FLIGHT_BYTES_MAX, MEMBERS_MAX, SNAPSHOT_PIECE_BYTES_MAX

# The handshake.
BROKERS_COMING_MAX: Final = 64
"""Connections beyond the limit for clients, for brokers that have not identified themselves yet."""
NAME_BYTES_MAX: Final = 255
"""Size of a broker's name, an address, an id: each text in a hello."""
NONCE_BYTES: Final = 32
HELLO_BYTES_MAX: Final = 6 * KIB
INTRODUCED_MAX: Final = 2 * MEMBERS_MAX
"""Members that a hello names."""
INTRODUCED_BYTES_MAX: Final = 4 * KIB
"""Size of their names and addresses; those that do not fit are left out."""
VOUCHED_PROPERTIES_BYTES_MAX: Final = 3 * KIB
"""Size of a client's properties in the hello of its broker; longer ones are left out."""
REASON_BYTES_MAX: Final = 2 * KIB
"""Size of the other end's reason for a rejection."""

# Messages on a link.
LINK_FRAME_BYTES_MAX: Final = FRAME_BYTES_MAX
LINK_MESSAGE_BYTES_MAX: Final = TRANSACTION_BYTES_MAX + MESSAGE_BYTES_MAX
"""Size of one message between brokers: an append has at least one entry, however large its batch was."""
WAITING_BYTES_MAX: Final = 64 * MIB
"""Bytes that wait for one broker that does not read; further messages are lost, as any message between brokers may
be."""
EARLY_MESSAGES_MAX: Final = 64
EARLY_BYTES_MAX: Final = 1 * MIB
"""Messages and bytes that the other end may send before this one knows that both directions are up; more are lost."""
PASSED_PART_BYTES_MAX: Final = 64 * KIB
"""Size of one part of a forwarded request or answer; heartbeats wait behind it."""
PASSED_BYTES_MAX: Final = 512 * MIB
"""Total size of such a request or answer."""
PASSED_UNDER_WAY_MAX: Final = 256
"""Requests of one broker that another one handles at a time."""
PEERS_MAX: Final = 288
"""Linked brokers: members of both sets of a change, learners, secondaries."""

# Tunnels.
TUNNEL_FRAME_BYTES_MAX: Final = 1 * MIB
"""The frame limit of each end. Bodies come in frames no larger than on links; but a header cannot be split, and the
header of a message with many dead-letterings is longer than any client may send."""
TUNNELS_DIALED_MAX: Final = 64
"""Tunnels being dialed at a time: after the loss of the root those of all clients are dialed again."""

# Passages.
RELAYS_MAX: Final = 2_048
"""Connections that a broker relays for others that cannot reach each other; further ones are rejected."""
RELAY_SILENT_MS_MAX: Final = 60_000
"""A connection without relayed data for this time is closed. Its ends detect silence long before."""
DIRECT_ATTEMPTS_MIN: Final = 2
"""Direct attempts that have to fail before another broker is asked for a passage; one, if it got no answer at all."""
KNOCK_MS: Final = 10_000
"""How often a broker checks whether the direct connection works again; it waits up to twice as long, so that not all
return at the same moment."""
ASK_AGAIN_MS: Final = 2_000
"""How often a broker without a known root asks the linked brokers for the primaries."""

TOLD_BYTES_MAX: Final = 2 * KIB
"""Size of the brokers' addresses that are sent to clients; those that do not fit are left out."""

# Time.
LINK_HEARTBEAT_S: Final = 2
"""A safety net: a link without data for twice as long is closed. The backups detect a silent root long before."""
TUNNEL_HEARTBEAT_S: Final = 5
"""A new root is known long before a tunnel falls silent. But a tunnel may lose everything while the root and the link
to it work: it is closed after at most two and a half intervals, so that clients receive their answers in time."""
DIAL_MS_MAX: Final = 2_000
"""Time for establishing a connection, and as much again for its handshake."""
REDIAL_MS_MIN: Final = 50
REDIAL_MS_MAX: Final = 1_000
"""Shortest and longest time before the next attempt to connect; the time doubles after each failure."""
ROOTLESS_REDIAL_MS: Final = 200
"""Longest time before the next attempt to connect to a member while no root is known: clients wait for the next root
meanwhile, and this member may be it. A broker that restarts dials the members in its log, and not the secondaries."""
REFUSED_REDIAL_MS: Final = 5_000
"""Time before the next attempt after the other broker has rejected this one, for example because of its key: only an
operator can change that."""

assert PASSED_PART_BYTES_MAX < LINK_FRAME_BYTES_MAX
assert HELLO_BYTES_MAX + 1 * KIB < HANDSHAKE_FRAME_BYTES_MAX, "a hello and its proof fit into a frame of the handshake"
assert INTRODUCED_BYTES_MAX + 8 * NAME_BYTES_MAX < HELLO_BYTES_MAX, "every hello fits into its limit"
assert VOUCHED_PROPERTIES_BYTES_MAX + 11 * NAME_BYTES_MAX < HELLO_BYTES_MAX, "that of a tunnel names no members"
assert TOLD_BYTES_MAX + 1 * KIB < FRAME_BYTES_MIN, "a client need not take larger frames"
assert IN_FLIGHT_BYTES_MAX < WAITING_BYTES_MAX
assert SNAPSHOT_PIECE_BYTES_MAX < WAITING_BYTES_MAX < LINK_MESSAGE_BYTES_MAX
assert LINK_FRAME_BYTES_MAX < TUNNEL_FRAME_BYTES_MAX
assert 2 * TUNNEL_HEARTBEAT_S * 1_000 < RELAY_SILENT_MS_MAX
assert REDIAL_MS_MIN <= ROOTLESS_REDIAL_MS <= REDIAL_MS_MAX <= REFUSED_REDIAL_MS
