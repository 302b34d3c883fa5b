"""The loads of `pandomq bench` without a command, as changes of a `Load`."""

from typing import Any

WINDOW = 2000
LATENCY_RATE = 2000

ACKED: dict[str, Any] = {"auto_ack": False, "ack_every": 100, "prefetch": 1000}

PERSISTENT: dict[str, Any] = {
    "size_bytes": 1024,
    **ACKED,
    "persistent": True,
    "durable": True,
    "confirm_window": WINDOW,
}

THROUGHPUT: tuple[dict[str, Any], ...] = (
    {"size_bytes": 16},
    {"size_bytes": 1024, **ACKED},
    PERSISTENT,
)

LATENCY_CHANGES: dict[str, Any] = {
    "size_bytes": 1024,
    "rate": LATENCY_RATE,
    "confirm_window": 1,
    "auto_ack": False,
    "ack_every": 1,
    "prefetch": 1000,
}
