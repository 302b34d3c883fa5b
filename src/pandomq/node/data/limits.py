"""Limits of the data port. What a message may be is in `data_form`."""

from typing import Final

from pandomq.data_form import DATA_JSON_BYTES_MAX, DATA_PAYLOAD_BYTES_MAX
from pandomq.limits import KIB, MIB

CONNECTIONS_MAX: Final = 1024
"""Who comes on top hears so, and may try again."""
HELLO_MS_MAX: Final = 15_000
"""From connecting until the login is answered, the wait for a refusal included."""
IDLE_MS_MAX: Final = 600_000
"""Between two requests."""
STALL_MS_MAX: Final = 120_000
"""In the middle of a request, or of an answer, without a byte."""
REQUESTS_AHEAD_MAX: Final = 8
"""What a client may send ahead; beyond it nothing is read from it until some are answered."""
SMALL_BYTES: Final = 64 * KIB
"""A request that is larger needs room among those of others."""
HELLO_BYTES_MAX: Final = 16 * KIB
"""Nobody needs more to say who it is."""
INCOMING_BYTES_MAX: Final = 128 * MIB
"""Of large requests, from when they are announced until they are answered; beyond it clients wait."""
OUTGOING_BYTES_MAX: Final = 128 * MIB
"""Of answers in memory that are not with the system yet; beyond it requests wait. What is sent from files is not in
memory."""
READ_CHUNKS_MAX: Final = 64
"""In one answer."""
ROWS_AT_ONCE: Final = 16
"""Of them, looked for at a time."""
INDEX_ROWS_MAX: Final = 4096
PATTERN_BYTES_MAX: Final = 512
"""Of a regular expression for the names of streams."""
STREAM_NAME_BYTES_MAX: Final = 1024
"""Those that hold what is leased of a queue have longer names than queues."""
WAIT_MS_MAX: Final = 5_000
"""How long a client may have the broker wait for a stream to grow."""
REQUESTS_PER_STEP_MAX: Final = 64
"""How many requests are begun between two looks at what else there is to do."""

assert DATA_JSON_BYTES_MAX + DATA_PAYLOAD_BYTES_MAX <= INCOMING_BYTES_MAX, "the largest request fits"
assert DATA_PAYLOAD_BYTES_MAX <= OUTGOING_BYTES_MAX
assert HELLO_BYTES_MAX <= SMALL_BYTES <= DATA_JSON_BYTES_MAX
