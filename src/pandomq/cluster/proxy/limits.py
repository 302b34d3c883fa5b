"""What a front may keep and how long it waits, by name."""

from typing import Final

from pandomq.limits import MIB, OUTGOING_HIGH_BYTES

ROOT_WAIT_MS: Final = 15_000
"""How long a client that asked something waits for a root, unless the configuration says otherwise (R15)."""
FEED_WAIT_MS_MAX: Final = 5_000
"""How long an answer of the root waits until the front knows of what it speaks, too."""
GOODBYE_MS_MAX: Final = 5_000
"""How long a client that closes its connection waits until the root has closed what it had there."""
REDIAL_MS_MIN: Final = 50
REDIAL_MS_MAX: Final = 1_000
"""How long a lost tunnel waits before it is wanted again; doubled after each attempt that failed."""
TRUNK_ATTEMPTS: Final = 8
"""Of a trunk to be counted as one: a new root, which may have to wait for its log before it serves, does not wait long
for the trunks of others, and then goes on without their private queues."""
UPLINK_BYTES_MAX: Final = OUTGOING_HIGH_BYTES
"""What may wait to be written to a tunnel before its client is not read from."""
ASKED_MAX: Final = 1_000
"""Questions on one tunnel that the root has not answered; past it the client is not read from."""
SETTLED_ASK_COUNT: Final = 1_024
"""Settlements of one channel that may not be in the root's log; past it the root is asked how far that is."""
SETTLED_KEPT_MAX: Final = 65_536
"""The same of one client; past it the client is not read from."""
KEPT_BYTES_MAX: Final = 16 * MIB
"""Publishes of one client that the root has not confirmed; past it the client is not read from."""
LETTERS_BYTES_MAX: Final = 64 * MIB
"""Dead letters of private queues, in one vhost, that the root has not confirmed; past it new ones are dropped."""
PRODUCERS_SEEN_MAX: Final = 131_072
"""Channels on other brokers whose last number is remembered; past it the older half is forgotten. It matters only for
what is sent twice, around a change of the root."""
TRUNK_BYTES_MAX: Final = 512 * MIB
"""What private queues may hold in memory before no more is taken from the root: it waits there, on the disk."""

assert REDIAL_MS_MIN < REDIAL_MS_MAX < ROOT_WAIT_MS
assert SETTLED_ASK_COUNT < SETTLED_KEPT_MAX
