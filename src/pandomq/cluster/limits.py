"""What links between brokers may hold and how long they wait, by name."""

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
"""Connections beyond those that clients may have, for brokers that have yet to say that they are some."""
NAME_BYTES_MAX: Final = 255
"""Of a broker's name, an address, an id: whatever a hello says."""
NONCE_BYTES: Final = 32
HELLO_BYTES_MAX: Final = 6 * KIB
INTRODUCED_MAX: Final = 2 * MEMBERS_MAX
"""Members that a hello names."""
INTRODUCED_BYTES_MAX: Final = 4 * KIB
"""What their names and addresses take; those that do not fit are not named."""
VOUCHED_PROPERTIES_BYTES_MAX: Final = 3 * KIB
"""What a client says of itself, as the broker that vouches for it passes it on; what is longer is left out."""
REASON_BYTES_MAX: Final = 2 * KIB
"""Of a refusal, as the other end gives it."""

# What crosses a link.
LINK_FRAME_BYTES_MAX: Final = FRAME_BYTES_MAX
LINK_MESSAGE_BYTES_MAX: Final = TRANSACTION_BYTES_MAX + MESSAGE_BYTES_MAX
"""One message between brokers: an append carries at least one entry, however large the batch was that it holds."""
WAITING_BYTES_MAX: Final = 64 * MIB
"""For one broker that does not take it; what comes on top is lost, as any message between brokers may be."""
EARLY_MESSAGES_MAX: Final = 64
EARLY_BYTES_MAX: Final = 1 * MIB
"""What the other end may send before this one knows that both directions are up; more is lost."""
PEERS_MAX: Final = 288
"""Brokers that one is linked to: members of both sets of a change, learners, secondaries."""

# Tunnels.
TUNNEL_FRAME_BYTES_MAX: Final = 1 * MIB
"""What an end takes. Bodies come in frames no larger than on links; but a header cannot be split, and that of a message
that has died often is longer than any client may send."""
TUNNELS_DIALED_MAX: Final = 64
"""Under way at a time: after the root has gone those of all clients are dialed anew."""

# Passages.
RELAYS_MAX: Final = 2_048
"""Connections that a broker passes on for those who do not reach each other; who asks for more is refused."""
RELAY_SILENT_MS_MAX: Final = 60_000
"""A connection on which nothing was passed on for so long is given up. Those at its ends do so long before."""
DIRECT_ATTEMPTS_MIN: Final = 2
"""So many have to fail before another broker is asked for a passage; one, if it got no answer at all."""
KNOCK_MS: Final = 10_000
"""How often a broker looks whether the direct way is open again; it waits up to twice as long, so that not all go back
at the same moment."""

TOLD_BYTES_MAX: Final = 2 * KIB
"""Addresses of brokers that clients are told of; those that do not fit are not named."""

# Time.
LINK_HEARTBEAT_S: Final = 2
"""A safety net: a link on which nothing came for twice as long is given up. That a root is silent its backups notice
long before."""
TUNNEL_HEARTBEAT_S: Final = 10
"""That the root has moved is known long before a tunnel falls silent."""
DIAL_MS_MAX: Final = 2_000
"""For a connection to come about, and for its handshake after that."""
REDIAL_MS_MIN: Final = 50
REDIAL_MS_MAX: Final = 1_000
"""How long to wait before the next attempt; doubled after each that fails."""
REFUSED_REDIAL_MS: Final = 5_000
"""After a refusal: it takes a person to change that."""

assert HELLO_BYTES_MAX + 1 * KIB < HANDSHAKE_FRAME_BYTES_MAX, "a hello and its proof fit into a frame of the handshake"
assert INTRODUCED_BYTES_MAX + 8 * NAME_BYTES_MAX < HELLO_BYTES_MAX, "a hello can be said, whatever is in it"
assert VOUCHED_PROPERTIES_BYTES_MAX + 11 * NAME_BYTES_MAX < HELLO_BYTES_MAX, "that of a tunnel names no members"
assert TOLD_BYTES_MAX + 1 * KIB < FRAME_BYTES_MIN, "a client need not take larger frames"
assert IN_FLIGHT_BYTES_MAX < WAITING_BYTES_MAX
assert SNAPSHOT_PIECE_BYTES_MAX < WAITING_BYTES_MAX < LINK_MESSAGE_BYTES_MAX
assert LINK_FRAME_BYTES_MAX < TUNNEL_FRAME_BYTES_MAX
assert 2 * TUNNEL_HEARTBEAT_S * 1_000 < RELAY_SILENT_MS_MAX
assert REDIAL_MS_MIN <= REDIAL_MS_MAX <= REFUSED_REDIAL_MS
