"""The measurements on clusters of three, and their targets."""

from typing import Any, NamedTuple

from pandomq.bench.measurements.overview import ACKED, PERSISTENT
from tools.compare.clusters.cluster import QUORUM
from tools.compare.peers import works

THROUGHPUT_SUBJECT = "persistent, 1 KiB, acks, confirms, replicated"
THROUGHPUT_CHANGES: dict[str, Any] = {**PERSISTENT, "queue_arguments": dict(QUORUM)}
THROUGHPUT_RATIO_MIN = 5.0

LATENCY_SUBJECT = f"{works.PERSISTENT_LATENCY_SUBJECT}, replicated"
LATENCY_CHANGES: dict[str, Any] = {**works.PERSISTENT_LATENCY_CHANGES, "queue_arguments": dict(QUORUM)}

PROXIED_SUBJECT = "consumer on another broker, 1 KiB, acks"
AT_LEADER_UNIT = "messages/s at the leader"
ELSEWHERE_UNIT = "messages/s elsewhere"
PROXIED_SHARE_UNIT = "of the throughput at the leader"
PROXIED_CHANGES: dict[str, Any] = {"size_bytes": 1024, **ACKED, "durable": True, "queue_arguments": dict(QUORUM)}
PROXIED_SHARE_MIN = 0.5

PAUSE_UNIT = "s without a confirm"

CATCH_UP_SUBJECT = "a follower comes back"
BEFORE_UNIT = "messages/s with three"
WITHOUT_UNIT = "messages/s with two"
MEANWHILE_UNIT = "messages/s meanwhile"
SHARE_UNIT = "of the throughput with three"
CATCH_UP_UNIT = "s to catch up"
MISSED_UNIT = "MiB missed"
SENT_UNIT = "MiB sent to it"
SHARE_MIN = 2 / 3
SENT_MAX = 1.2
"""A system that sends the whole queue again sends half as much more."""


class Scale(NamedTuple):
    warm_up_s: float
    duration_s: float
    flow_s: float
    held_messages: int
    """1 KiB each, held by all three before one of them is stopped."""
    missed_messages: int
    speed_rounds: int
    fault_rounds: int


FULL = Scale(
    warm_up_s=1.0,
    duration_s=4.0,
    flow_s=4.0,
    held_messages=2**18,
    missed_messages=2**20,
    speed_rounds=5,
    fault_rounds=3,
)
QUICK = Scale(
    warm_up_s=0.5,
    duration_s=2.0,
    flow_s=2.0,
    held_messages=2**14,
    missed_messages=2**16,
    speed_rounds=1,
    fault_rounds=1,
)
