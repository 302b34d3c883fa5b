"""Every limit of the HTTP side by name."""

from typing import Final

from pandomq.limits import KIB, MIB
from pandomq.replica.limits import CHANGE_MS

BODY_BYTES_MAX: Final = 20 * MIB
"""Of a request, as RabbitMQ's default."""
BODY_S_MAX: Final = 30.0
"""A request's body arrives within this time."""
ANSWER_S_MAX: Final = 30.0
"""The broker answers within this time, or the request fails with 503: a log that cannot commit holds replies back."""
CLUSTER_CHANGE_S_MAX: Final = CHANGE_MS / 1000 + 5.0
"""A change of members takes as long as a newcomer needs to catch up, which has a limit of its own."""
FORWARD_CONNECT_S_MAX: Final = 3.0
"""How long a connection to another broker's HTTP API may take."""
FORWARD_S_MAX: Final = CLUSTER_CHANGE_S_MAX + 5.0
"""And its answer."""
FORWARD_BYTES_MAX: Final = 256 * MIB
"""Of such an answer: the messages that one request may get, as JSON."""
COMPRESSED_BYTES_MIN: Final = 4 * KIB
"""Smaller responses are not worth compressing."""

SLICE_ROWS: Final = 200
"""Rows that are made in one turn of the loop; about half a millisecond."""
LISTING_COST_SHARE: Final = 100
"""Making a listing anew takes at most one part in so many of the time: until then it is shared by all who ask. That is
about a second with ten thousand queues, and next to nothing with a few."""
LISTING_COST_SHARE_AFTER_CHANGE: Final = 10
"""The same after a change over HTTP: who changed something sees it in the next listing, for which it waits."""
LISTING_FRESH_S_MAX: Final = 5.0
LISTING_KEPT_S: Final = 60.0
"""Rows that nobody asked for in this time are forgotten."""
LISTINGS_MAX: Final = 64
"""Different questions about one kind of object whose answers are kept."""
LISTINGS_BYTES_MAX: Final = 64 * MIB
"""And how much these answers take in all."""
RATE_WINDOW_S: Final = 1.0
"""Rates are counted over at least this time."""

PAGE_SIZE: Final = 100
PAGE_SIZE_MAX: Final = 500
NAME_FILTER_CHARS_MAX: Final = 256
FILTER_SLICE_ROWS: Final = 20
NAME_FILTER_S_MAX: Final = 0.2
"""What such a filter may cost the loop in all."""
DECLARED_AT_ONCE: Final = 200
"""Of definitions that are imported: as many go into one batch of the broker."""
GET_MESSAGES_MAX: Final = 10_000
"""Messages that one request may get from a queue."""
GET_BYTES_MAX: Final = 64 * MIB
"""It gets no further message once it has so many bytes."""

assert 1 <= PAGE_SIZE <= PAGE_SIZE_MAX
assert ANSWER_S_MAX < FORWARD_S_MAX, "who forwards waits for longer than who answers"
assert LISTING_COST_SHARE_AFTER_CHANGE <= LISTING_COST_SHARE
