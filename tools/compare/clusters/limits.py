"""The limits of a cluster's measurement: its timeouts, and those of the measuring client."""

MEMBERS = 3

READY_TIMEOUT_S = 90.0
"""From the start of a broker until its cluster is complete."""
STOP_TIMEOUT_S = 60.0
POLL_S = 0.1
CATCH_UP_TIMEOUT_S = 240.0

FAULT_RATE = 2000
"""Messages per second during a fault."""
FAULT_WINDOW = 2000
FAULT_BODY_BYTES = 1024
BEFORE_FAULT_S = 2.0
AFTER_FAULT_S = 1.5
"""Confirms have to flow again for this time before a fault counts as overcome."""
WATCH_S_MIN = 5.0
"""It is watched for at least this time: a broker's reaction to a fault may cause a pause later."""
FAULT_TIMEOUT_S = 30.0
"""A broker without a confirm for this time is abandoned."""

SILENCE_NS = 150_000_000
"""Without a confirm for this long a client looks for another broker while it keeps the one it has."""
PATIENCE_NS = 1_000_000_000
"""An accepting broker has this time for the first confirm, and twice as long after each change that brought none."""
DIAL_AGAIN_NS = 20_000_000
DIAL_TIMEOUT_NS = 1_000_000_000

COLLECT_QUIET_S = 10.0
"""A queue without a delivery for this time is empty."""

COMMAND_TIMEOUT_S = 30.0
DISK_MIB = 1024
"""Size of a disk that can be made to stall."""
