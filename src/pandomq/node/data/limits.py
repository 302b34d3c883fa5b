"""Limits of the data port. The limits of a message are in `data_form`."""

from typing import Final

from pandomq.data_form import DATA_JSON_BYTES_MAX, DATA_PAYLOAD_BYTES_MAX
from pandomq.limits import KIB, MIB, PASSWORD_BYTES_MAX, STAGED_ATTEMPTS_MAX

CONNECTIONS_MAX: Final = 1024
"""Maximum number of clients. Further clients are refused, and may try again."""
REFUSED_MAX: Final = 64
"""Clients beyond that number that may receive an error; further ones are closed at once."""
NEWCOMERS_PER_NETWORK_MAX: Final = 256
"""Clients from one network that have not logged in; further ones are closed at once."""
CROWDED_HELLO_MS_MAX: Final = 5_000
"""If there is no room for another client, one that has not logged in for so long is closed to make room: one that has
sent no request, or else one whose login waits in line."""
HELLO_MS_MAX: Final = 15_000
"""The time from connecting until the login is answered, the wait for a refusal included."""
IDLE_MS_MAX: Final = 600_000
"""The time between two requests."""
STALL_MS_MAX: Final = 120_000
"""The time in the middle of a request, or of an answer, without a byte."""
LOOK_MS: Final = 10_000
"""How often slow clients are looked for; a connection may last so much longer than it should."""
REQUESTS_AHEAD_MAX: Final = 8
"""Requests that a client may send ahead; beyond it nothing is read from it until some are answered."""
SMALL_BYTES: Final = 64 * KIB
"""A request that takes more memory has to get room among those of other clients."""
DECODED_BYTES_PER_JSON_BYTE: Final = 32
"""The memory that a byte of JSON can take when it is decoded: measured with `[{"":0},{"":0},…]`."""
REQUEST_JSON_BYTES_MAX: Final = 64 * KIB
"""For all requests but those in `LARGE_REQUESTS`, which may have `data_form.DATA_JSON_BYTES_MAX`."""
REQUEST_VALUES_MAX: Final = 8_192
"""The values in the JSON of a request, as `scanner.values_of` counts them: commas in a password count, too."""
LARGE_REQUESTS: Final = ("commit", "drop")
"""Requests that list attempts. Their JSON has to begin with `ask`, if it is large."""
LARGE_REQUEST_VALUES_MAX: Final = 4 * STAGED_ATTEMPTS_MAX + REQUEST_VALUES_MAX
"""For each attempt a list of three values."""
LARGE_REQUEST_BEGIN_BYTES: Final = 64
"""The bytes of JSON from which a large request is recognized."""
DECODED_PER_STEP_BYTES_MAX: Final = 256 * KIB
"""The JSON of requests that is decoded before the broker turns to its other work; one request at least."""
HELLO_BYTES_MAX: Final = 16 * KIB
"""A login needs no more than this."""
INCOMING_BYTES_MAX: Final = 128 * MIB
"""Large requests, from when they are announced until they are answered; beyond it clients wait. One user has a part of
it."""
OUTGOING_BYTES_MAX: Final = 128 * MIB
"""Answers in memory that are not with the system yet; beyond it requests wait. Data sent from files is not in
memory."""
READ_CHUNKS_MAX: Final = 64
"""The chunks in one answer."""
ROWS_AT_ONCE: Final = 16
"""The number of them that are looked up at a time."""
INDEX_ROWS_MAX: Final = 4096
PATTERN_BYTES_MAX: Final = 512
"""The length of a regular expression for the names of streams."""
STREAM_NAME_BYTES_MAX: Final = 1024
"""Streams that hold leased messages of a queue have longer names than queues."""
WAIT_MS_MAX: Final = 5_000
"""How long a client may have the broker wait for a stream to grow."""
REQUESTS_PER_STEP_MAX: Final = 64
"""How many requests are begun before the broker turns to its other work."""

assert DATA_JSON_BYTES_MAX * DECODED_BYTES_PER_JSON_BYTE + DATA_PAYLOAD_BYTES_MAX <= INCOMING_BYTES_MAX, (
    "the largest request fits"
)
assert PASSWORD_BYTES_MAX < REQUEST_VALUES_MAX, "a password may consist of commas"
assert DATA_PAYLOAD_BYTES_MAX <= OUTGOING_BYTES_MAX
assert CROWDED_HELLO_MS_MAX <= HELLO_MS_MAX
assert HELLO_BYTES_MAX <= REQUEST_JSON_BYTES_MAX <= DATA_JSON_BYTES_MAX
REQUEST_NAME_SHOWN_CHARS: Final = 64
"""Of the name of an unknown request, quoted in its refusal."""
