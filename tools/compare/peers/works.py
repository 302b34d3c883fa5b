"""The compared loads, the same for every broker, and the targets for the figures."""

from typing import Any, NamedTuple

from pandomq.bench.load import Measurement
from pandomq.bench.measurements.overview import ACKED, LATENCY_CHANGES, LATENCY_RATE, PERSISTENT, WINDOW
from tools.compare.peers.ledger import FAST, PLAIN, RABBITMQ

RATE = "messages/s"
DELIVERY_RATE = "deliveries/s"
RATIO = "times the cost"
CPU = "broker µs"
FAN_OUT_BACKLOG = 200_000
"""Outstanding deliveries: no more than each of the brokers can deliver before a measurement ends."""


class Work(NamedTuple):
    subject: str
    changes: dict[str, Any]
    unit: str = RATE
    brokers: tuple[str, ...] = (RABBITMQ, FAST, PLAIN)
    target: float | None = None
    """The required factor of RabbitMQ's rate for the fast kernel."""
    plain_target: float | None = None
    remark: str = ""


WORKS = (
    Work("transient, 16 B, auto-ack", {"size_bytes": 16}, target=12.0, plain_target=1.0),
    Work("transient, 1 KiB, acks", {"size_bytes": 1024, **ACKED}, target=7.0, plain_target=1.0),
    Work(
        "persistent, 1 KiB, acks, confirms",
        PERSISTENT,
        target=5.0,
        remark=f"both on disk, window {WINDOW:,}; PandoMQ syncs before every confirm (fsync = always), RabbitMQ's "
        "queue is a classic one",
    ),
    Work(
        "the same, quorum queue",
        {**PERSISTENT, "queue_arguments": {"x-queue-type": "quorum"}},
        target=4.0,
        remark="of one broker each",
    ),
    *(
        Work(
            f"fan-out to {subscribers:,} private queues, 100 B",
            {
                "size_bytes": 100,
                "exchange_type": "fanout",
                "queues": subscribers,
                "consumers": subscribers,
                "private_queues": True,
                "backlog_max": FAN_OUT_BACKLOG // subscribers,
            },
            unit=DELIVERY_RATE,
            target=12.0,
        )
        for subscribers in (200, 1000)
    ),
)

LATENCY_SUBJECT = f"1 KiB at {LATENCY_RATE:,} messages/s, acks, confirms"
PERSISTENT_LATENCY_SUBJECT = f"persistent, {LATENCY_SUBJECT}"
PERSISTENT_LATENCY_CHANGES = {**LATENCY_CHANGES, "persistent": True, "durable": True}
LATENCIES = ((LATENCY_SUBJECT, LATENCY_CHANGES), (PERSISTENT_LATENCY_SUBJECT, PERSISTENT_LATENCY_CHANGES))
CONFIRM_P99_UNIT = "confirm p99 µs"
CONFIRM_P99_MS_MAX = 8.0


def latency_figures(measured: Measurement) -> dict[str, float]:
    """Figures by unit, in microseconds."""
    found: dict[str, float] = {}
    for what, latency in (("delivery", measured.delivery_latency), ("confirm", measured.confirm_latency)):
        if latency is not None:
            found |= {
                f"{what} p50 µs": latency.p50_us,
                f"{what} p99 µs": latency.p99_us,
                f"{what} max µs": latency.max_us,
            }
    return found


CONNECTIONS_SUBJECT = "connection with channel, private queue and consumer"
OPENED_UNIT = "opened/s"
WEIGHT_UNIT = "KiB each"
IDLE_SUBJECT = "idle connections"

FEATURE_PREFIX = "feature: "
FLATNESS_PREFIX = "flatness: "

FEATURE_COST_MAX = 1.5
FLATNESS_MAX = 1.3
CONNECTION_KIB_MAX = 25.0
OPENED_RATE_MIN = 2000.0
OTHERS_SHARE_MAX = 0.05
"""Beyond this, other programs on the machine make the figures invalid."""


class Scale(NamedTuple):
    """The amounts in one round."""

    warm_up_s: float
    duration_s: float
    feature_warm_up_s: float
    feature_duration_s: float
    connections: int
    rabbit_connections: int
    bindings: tuple[int, ...]
    queues: tuple[int, ...]
    large_messages: int = 0
    """1 KiB each, in a long queue."""
    small_messages: int = 0
    """16 B each, in a longer one."""
    churn_s: float = 0.0
    small_times: int = 1
    """How often the longer one is measured."""


FULL = Scale(1.0, 3.0, 0.3, 1.0, 10_000, 2_000, (10, 1_000, 100_000), (1, 1_000), 1_000_000, 10_000_000, 60.0, 5)
QUICK = Scale(0.5, 1.0, 0.2, 0.4, 2_000, 500, (10, 10_000), (1, 1_000), 20_000, 100_000, 6.0)

# Long measurements.

MEMORY_UNIT = "MiB of memory"
PEAK_UNIT = "MiB of memory at most"
DISK_UNIT = "MiB of disk"
FILL_UNIT = "queued/s"
RESTART_UNIT = "s to restart"
CRASH_UNIT = "s to restart, killed"
LARGE_MEMORY_MIB_MAX = 250.0
SMALL_MEMORY_MIB_MAX = 400.0
RESTART_S_MAX = 10.0


class LongWork(NamedTuple):
    """A queue that grows to this many messages, without consumers."""

    subject: str
    kind: str
    size_bytes: int
    messages: int
    memory_mib_max: float
    restarts: bool = False
    drains: bool = False
    """The cost of a message is compared with a short queue."""
    times: int = 1
    """How often it is measured; the median is shown."""
    brokers: tuple[str, ...] = (FAST,)


_LARGE_KINDS = {
    "persistent": "persistent",
    "transient": "transient",
    "priority": "ten priorities",
    "ttl": "x-message-ttl",
    "holes": "a tenth acked out of order",
}


def long_works(scale: Scale) -> list[LongWork]:
    return [
        *(
            LongWork(
                f"{scale.large_messages:,} × 1 KiB queued, {words}",
                kind,
                1024,
                scale.large_messages,
                LARGE_MEMORY_MIB_MAX,
                restarts=kind == "persistent",
                brokers=(RABBITMQ, FAST) if kind == "persistent" else (FAST,),
            )
            for kind, words in _LARGE_KINDS.items()
        ),
        LongWork(
            f"{scale.small_messages:,} × 16 B queued, persistent",
            "persistent",
            16,
            scale.small_messages,
            SMALL_MEMORY_MIB_MAX,
            restarts=True,
            drains=True,
            times=scale.small_times,
        ),
    ]


SHORT_QUEUE = 1000
"""Maximum length of the queue with which a long one is compared."""


def queued_subject(work: LongWork) -> str:
    return f"{FLATNESS_PREFIX}{SHORT_QUEUE:,} to {work.messages:,} queued messages"


CHURN_SUBJECT = "churn: persistent, 1 KiB, acks, confirms"
CHURN_MEMORY_UNIT = "times the memory"
CHURN_DISK_UNIT = "times the disk"
CHURN_MAX = 1.2
"""The largest of the second half over the largest of the first."""
