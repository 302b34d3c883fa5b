"""Every limit of the HTTP API by name."""

from typing import Final

from pandomq.limits import HTTP_BYTES_MAX, HTTP_BYTES_MIN, HTTP_PER_USER_BYTES_MAX, KIB, MIB
from pandomq.replica.limits import CHANGE_MS

BODY_BYTES_MAX: Final = 20 * MIB
"""For a request with definitions or a message, like RabbitMQ's default."""
SMALL_BODY_BYTES_MAX: Final = 128 * KIB
"""For any other request: the size of an AMQP frame."""
BODY_STRUCTURES_MAX: Final = 1_000_000
"""Objects and lists in a large body; definitions of twenty megabytes have about 500,000."""
ITEM_BYTES_MAX: Final = 1 * MIB
"""For one object in definitions: it is decoded at once."""
NESTING_MAX: Final = 64
"""Depth of objects and lists in a body."""
BODY_S_MAX: Final = 30.0
"""A request's body arrives within this time."""
ANSWER_S_MAX: Final = 30.0
"""The broker answers within this time, or the request fails with 503: a log that cannot commit holds replies back."""
CLUSTER_CHANGE_S_MAX: Final = CHANGE_MS / 1000 + 5.0
"""A change of members takes as long as a new member needs to catch up, which has its own limit."""
FORWARD_S_MAX: Final = CLUSTER_CHANGE_S_MAX + 5.0
"""For the answer of another broker to a forwarded request."""
HAND_OVER_S_MAX: Final = 10.0
"""Time until the next root is known, if the answer of the old one was lost."""
COMPRESSED_BYTES_MIN: Final = 4 * KIB
"""Smaller responses are not worth compressing."""

SLICE_ROWS: Final = 200
"""Rows that are built in one turn of the loop; about half a millisecond."""
LISTING_COST_SHARE: Final = 100
"""Rebuilding a listing takes at most one part in this many of the time: until then all requests share it. That is about
a second with ten thousand queues, and next to nothing with a few."""
LISTING_COST_SHARE_AFTER_CHANGE: Final = 10
"""The part of the time for a listing after a change over HTTP: the listing waits for the rebuild, so that it shows the
change."""
LISTING_FRESH_S_MAX: Final = 5.0
LISTING_KEPT_S: Final = 60.0
"""Rows that were not requested in this time are dropped."""
LISTINGS_MAX: Final = 64
"""Different queries for one kind of object whose answers are kept."""
LISTINGS_BYTES_MAX: Final = 64 * MIB
"""Maximum total size of these answers."""
RATE_WINDOW_S: Final = 1.0
"""Rates are computed over at least this time."""

PAGE_SIZE: Final = 100
PAGE_SIZE_MAX: Final = 500
NAME_FILTER_CHARS_MAX: Final = 256
FILTER_SLICE_ROWS: Final = 20
NAME_FILTER_S_MAX: Final = 0.2
"""The processor time that such a filter may use in total."""
DECLARED_AT_ONCE: Final = 200
"""Imported definitions in one batch of the broker."""
GET_MESSAGES_MAX: Final = 10_000
"""Messages that one request may get from a queue."""
GET_BYTES_MAX: Final = 19 * MIB
"""Maximum size of its answer: headers and bodies as JSON. It gets no message that does not fit. While such answers take
as much room as they may, there is room for small bodies: further requests can be read, and wait."""
HEADER_BYTES_INLINE_MAX: Final = 16 * KIB
"""The header of a message with a larger one is decoded in a thread: that takes some ten milliseconds."""
SLICE_BYTES: Final = 192 * KIB
"""Bytes of a body or an answer that are encoded or written in one turn of the loop; a multiple of three, so that the
slices of base64 can be joined."""
REASON_CHARS_MAX: Final = 2_000
QUOTED_CHARS_MAX: Final = 200
"""Of a value that a refusal quotes."""

assert SMALL_BODY_BYTES_MAX < ITEM_BYTES_MAX < BODY_BYTES_MAX
assert max(BODY_BYTES_MAX, GET_BYTES_MAX + 8 * SMALL_BODY_BYTES_MAX) <= HTTP_BYTES_MIN
assert HTTP_BYTES_MIN <= HTTP_PER_USER_BYTES_MAX <= HTTP_BYTES_MAX
assert SLICE_BYTES % 3 == 0
assert 1 <= PAGE_SIZE <= PAGE_SIZE_MAX
assert ANSWER_S_MAX < FORWARD_S_MAX, "who forwards waits for longer than who answers"
assert LISTING_COST_SHARE_AFTER_CHANGE <= LISTING_COST_SHARE
