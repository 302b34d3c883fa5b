"""Limits on the memory that a front uses and on the time that it waits, by name."""

from typing import Final

from pandomq.cluster.limits import TUNNEL_HEARTBEAT_S
from pandomq.limits import MIB, OUTGOING_HIGH_BYTES, PRODUCER_REMEMBERED_MS

ROOT_WAIT_MS: Final = 15_000
"""How long a client that sent a request waits for a root, unless the configuration has another value (R15)."""
REPEAT_MS_MAX: Final = PRODUCER_REMEMBERED_MS // 2
"""How long publishes that the root has not confirmed wait for a root, to be sent again. Roots remember for longer which
of them they took."""
FEED_WAIT_MS_MAX: Final = 5_000
"""How long an answer of the root waits until the front knows the objects that it mentions."""
CLOSE_WAIT_MS_MAX: Final = 5_000
"""How long a client that closes its connection waits until the root has closed what it had there."""
REDIAL_MS_MIN: Final = 50
REDIAL_MS_MAX: Final = 1_000
"""How long a lost tunnel waits before it is wanted again, at most; the wait doubles after each failed attempt."""
TRUNK_REDIAL_MS: Final = 20
TRUNK_ATTEMPTS: Final = 25
"""How long a lost trunk waits before it is wanted again, and how many attempts count as one when that time is doubled.
A new root refuses trunks until its log lets it serve. After that it waits for them no longer than a lease, and then
confirms publishes without their private queues. So a trunk must not miss that time."""
UPLINK_BYTES_MAX: Final = OUTGOING_HIGH_BYTES
"""Bytes that may wait to be written to a tunnel before its client is not read from."""
ASKED_MAX: Final = 1_000
"""Requests on one tunnel that the root has not answered; past it the client is not read from."""
SETTLED_ASK_COUNT: Final = 1_024
"""Settlements of one channel that may not be in the root's log; past it the front requests a report from the root."""
SETTLED_KEPT_MAX: Final = 65_536
"""Settlements of one client that may not be in the root's log; past it the client is not read from."""
KEPT_BYTES_MAX: Final = 16 * MIB
"""Publishes of one client that the root has not confirmed; past it the client is not read from."""
LETTERS_BYTES_MAX: Final = 64 * MIB
"""Dead letters of private queues, in one vhost, that the root has not confirmed; past it new ones are dropped."""
PRODUCERS_SEEN_MAX: Final = 131_072
"""Channels on other brokers whose last number is remembered; past it the half that published least recently is
forgotten. It matters only for publishes that are sent twice, around a change of the root."""
TRUNK_BYTES_MAX: Final = 512 * MIB
"""Memory that private queues may use before the front takes no more from the root: messages wait there, on the disk."""

assert TRUNK_REDIAL_MS < REDIAL_MS_MIN < REDIAL_MS_MAX < ROOT_WAIT_MS < REPEAT_MS_MAX < PRODUCER_REMEMBERED_MS
assert TUNNEL_HEARTBEAT_S * 2_500 + REDIAL_MS_MAX < ROOT_WAIT_MS, "a client that is patient is answered"
assert SETTLED_ASK_COUNT < SETTLED_KEPT_MAX
