"""The bounds of a cluster's measurement: how long things may take, and how patient the measuring client is."""

MEMBERS = 3

READY_TIMEOUT_S = 90.0
"""From the start of a broker until its cluster is whole."""
STOP_TIMEOUT_S = 60.0
POLL_S = 0.1
CATCH_UP_TIMEOUT_S = 240.0

FAULT_RATE = 2000
"""Messages a second while something is broken on purpose."""
FAULT_WINDOW = 2000
FAULT_BODY_BYTES = 1024
BEFORE_FAULT_S = 2.0
AFTER_FAULT_S = 1.5
"""So long confirms have to flow again before a fault counts as overcome."""
WATCH_S_MIN = 5.0
"""And so long it is watched in any case: what a broker does about a fault may make a pause later."""
FAULT_TIMEOUT_S = 30.0
"""Whoever does not confirm for so long is not waited for any longer."""

SILENCE_NS = 150_000_000
"""Without a confirm for this long a client looks for another broker while it keeps the one it has."""
PATIENCE_NS = 1_000_000_000
"""Whoever let it in is given this long for the first confirm, and twice as long after each change that brought none."""
DIAL_AGAIN_NS = 20_000_000
DIAL_TIMEOUT_NS = 1_000_000_000

COLLECT_QUIET_S = 10.0
"""A queue that gives nothing for this long has nothing more to give."""

COMMAND_TIMEOUT_S = 30.0
DISK_MIB = 1024
"""Of a disk that can be made to stall."""
