"""A load (`Load`) and its result (`Measurement`): the structs that all modes, reports and JSON share."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pandomq.bench.percentiles import Latency

ArgumentMap = dict[str, bool | int | float | str]
EXCHANGE_TYPES = ("", "direct", "topic", "fanout")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One load: the same for every measured broker.

    A field with a description can be an option of `pandomq bench` (`cli/bench/options`). Its `extra` has the names of
    the option, unless they follow from the field's.
    """

    url: Annotated[
        str,
        Meta(
            description="URL of the broker, as amqp://user:password@host:port/vhost.", extra={"option": ("--url", "-u")}
        ),
    ]
    consumer_url: str = ""
    """The broker of the consumers; empty means that of the publishers."""
    size_bytes: Annotated[
        int, Meta(description="Size of message bodies in bytes.", extra={"option": ("--size", "-s")})
    ] = 16
    publishers: Annotated[
        int, Meta(ge=1, description="Number of publishing connections.", extra={"option": ("--publishers", "-p")})
    ] = 1
    consumers: Annotated[
        int, Meta(ge=0, description="Number of consuming connections.", extra={"option": ("--consumers", "-c")})
    ] = 1
    queues: Annotated[int, Meta(ge=1, description="Number of queues. Messages are published to them in turn.")] = 1
    auto_ack: Annotated[
        bool,
        Meta(
            description="Consumers acknowledge deliveries, or consume without acknowledgements (--auto-ack).",
            extra={"option": ("--acks/--auto-ack",), "negated": True},
        ),
    ] = True
    ack_every: Annotated[
        int, Meta(ge=1, description="Acknowledge this number of deliveries with one ack (multiple).")
    ] = 100
    prefetch: Annotated[
        int, Meta(ge=0, le=65535, description="Prefetch: unacknowledged deliveries per consumer. 0 means no limit.")
    ] = 0
    persistent: Annotated[
        bool,
        Meta(
            description="Use durable queues and persistent messages (delivery mode 2).",
            extra={"option": ("--persistent",)},
        ),
    ] = False
    durable: bool = False
    confirm_window: Annotated[
        int,
        Meta(
            ge=0,
            description=(
                "Use publisher confirms, with this number of unconfirmed messages per publisher. 0 means no confirms."
            ),
            extra={"option": ("--confirms",)},
        ),
    ] = 0
    backlog_max: Annotated[
        int,
        Meta(
            ge=0,
            description="Number of messages by which publishers may be ahead of consumers. 0 means no limit.",
            extra={"option": ("--backlog",)},
        ),
    ] = 20_000
    """0 leaves this to the broker's flow control."""
    queue_arguments: ArgumentMap = {}
    consumer_arguments: ArgumentMap = {}
    exchange_type: Annotated[
        str,
        Meta(
            description=(
                "Publish through an exchange of this type: direct, topic or fanout. Without it, the default exchange "
                "is used."
            ),
            extra={"option": ("--exchange",)},
        ),
    ] = ""
    """Empty publishes to the queues' names through the default exchange."""
    private_queues: bool = False
    """Each consumer has an exclusive queue of its own, like a subscriber."""
    bindings: Annotated[
        int, Meta(ge=0, description="Number of bindings of the exchange. 0 means one for each queue.")
    ] = 0
    """They are spread over the queues."""
    priorities: int = 0
    """Messages go through priorities 0 to this number - 1; 0 sets none."""
    expiration_ms: int = 0
    header_keys: int = 0
    """Messages carry a header `bench-key` of this many different values; 0 sets none."""
    warm_up_s: Annotated[
        float, Meta(description="Warm-up before the measurement, in seconds.", extra={"option": ("--warm-up",)})
    ] = 1.0
    duration_s: Annotated[
        float, Meta(description="Duration of the measurement in seconds.", extra={"option": ("--duration", "-d")})
    ] = 5.0
    rate: Annotated[
        int,
        Meta(
            ge=0,
            description="Messages per second, over all publishers.",
            extra={"option": ("--rate", "-r"), "least": 1},
        ),
    ] = 0
    """0, which is no value of the option, is as fast as the broker accepts them."""

    def __post_init__(self) -> None:
        if self.publishers < 1 or self.queues < 1 or self.consumers < 0:
            raise ValueError(
                "--publishers and --queues must be at least 1, and --consumers at least 0, not "
                f"{self.publishers}, {self.queues} and {self.consumers}"
            )
        if self.exchange_type not in EXCHANGE_TYPES:
            raise ValueError(
                f"exchange type '{self.exchange_type}' is unknown: expected one of {', '.join(EXCHANGE_TYPES[1:])}"
            )
        if self.private_queues and self.consumers != self.queues:
            raise ValueError("private queues have one consumer each")
        if not self.auto_ack and not 1 <= self.ack_every <= (self.prefetch or self.ack_every):
            raise ValueError("--ack-every must be between 1 and the prefetch, or deliveries would stop")
        if self.rate and self.size_bytes < 8:
            raise ValueError("a rate-limited message carries its send time: use bodies of at least 8 bytes")
        if self.duration_s <= 0 or self.warm_up_s < 0:
            raise ValueError("durations must be positive")

    @property
    def copies(self) -> int:
        """Deliveries that one publish leads to."""
        return self.queues if self.exchange_type == "fanout" else 1


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one load in its measured time, without the warm-up. Rates are per second."""

    load: Load
    server: str
    seconds: float
    published_rate: float
    delivered_rate: float
    confirmed_rate: float = 0.0
    refused: int = 0
    """Publishes that were nacked."""
    missing: int = 0
    """Published, but neither delivered nor nacked when the drain ended; dropped by a limit or by expiry, or lost."""
    blocked: bool = False
    walked: int = 0
    """Deliveries that had to be counted frame by frame."""
    generator_cpu_us: float = 0.0
    """Processor time of the load generator for one message."""
    broker_cpu_us: float | None = None
    """Processor time of the broker for one message, where its process is known."""
    delivery_latency: Latency | None = None
    confirm_latency: Latency | None = None

    @property
    def processed_rate(self) -> float:
        """Messages per second through the broker: deliveries; without consumers, confirms."""
        if self.load.consumers:
            return self.delivered_rate
        # Without confirms only the socket shows it, and its buffers may hold a second's worth.
        return self.confirmed_rate if self.load.confirm_window else self.published_rate
