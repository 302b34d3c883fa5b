"""The limits of the load generator itself: buffers, samples, time."""

FRAME_BYTES_MAX = 131_072
"""Our proposal at tune; the broker may choose less."""

BATCH_BYTES_AIM = 256 * 1024
"""Pre-encoded publishes are repeated up to about this size: large enough that a system call is cheap per message,
small enough to stay in the processor's cache."""

BATCH_BYTES_MAX = 64 * 1024 * 1024
RECEIVE_BYTES_MIN = 256 * 1024
RECEIVE_BYTES_MAX = 512 * 1024 * 1024
SOCKET_BUFFER_BYTES = 1024 * 1024

SAMPLES_MAX = 4_000_000
"""Latency samples kept in one run; later ones are counted but not kept."""

SETUP_TIMEOUT_S = 30.0
BULK_TIMEOUT_S = 600.0
"""Setting up 100,000 bindings takes some brokers minutes."""

DRAIN_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0
OPENING_AT_ONCE_MAX = 128
"""Connections that are opened at once, when many are opened."""

FILES_SPARE = 256
ROTATED_KEYS_MAX = 4096
"""Routing keys that one batch of publishes uses."""
