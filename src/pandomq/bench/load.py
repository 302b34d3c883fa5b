"""What is asked for (`Load`) and what came out (`Measurement`): the nouns that all modes, reports and JSON share."""

import msgspec

from pandomq.bench.percentiles import Latency

ArgumentMap = dict[str, bool | int | float | str]
EXCHANGE_TYPES = ("", "direct", "topic", "fanout")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One load: the same for every broker it is put on."""

    url: str
    consumer_url: str = ""
    """Where the consumers go; empty means where the publishers do."""
    size_bytes: int = 16
    publishers: int = 1
    consumers: int = 1
    queues: int = 1
    auto_ack: bool = True
    ack_every: int = 100
    prefetch: int = 0
    persistent: bool = False
    durable: bool = False
    confirm_window: int = 0
    backlog_max: int = 20_000
    """How far the publishers may run ahead of the consumers; 0 lets the broker's own flow control decide."""
    queue_arguments: ArgumentMap = {}
    consumer_arguments: ArgumentMap = {}
    exchange_type: str = ""
    """Empty publishes to the queues' names through the default exchange."""
    private_queues: bool = False
    """Each consumer has an exclusive queue of its own, as subscribers do."""
    bindings: int = 0
    """Bindings of the exchange in all, spread over the queues; 0 means one for each queue."""
    priorities: int = 0
    """Messages go through priorities 0 to this number - 1; 0 sets none."""
    expiration_ms: int = 0
    header_keys: int = 0
    """Messages carry a header `bench-key` of this many different values; 0 sets none."""
    warm_up_s: float = 1.0
    duration_s: float = 5.0
    rate: int = 0
    """Messages a second in all; 0 is as fast as the broker takes them."""

    def __post_init__(self) -> None:
        if self.publishers < 1 or self.queues < 1 or self.consumers < 0:
            raise ValueError("at least one publisher and one queue are needed")
        if self.exchange_type not in EXCHANGE_TYPES:
            raise ValueError(f"exchange type {self.exchange_type!r} is none of {EXCHANGE_TYPES[1:]}")
        if self.private_queues and self.consumers != self.queues:
            raise ValueError("private queues have one consumer each")
        if not self.auto_ack and not 1 <= self.ack_every <= (self.prefetch or self.ack_every):
            raise ValueError("ack-every has to be between 1 and the prefetch, or deliveries would stop")
        if self.rate and self.size_bytes < 8:
            raise ValueError("a rate-limited message carries its send time: 8 bytes at least")
        if self.duration_s <= 0 or self.warm_up_s < 0:
            raise ValueError("durations are positive")

    @property
    def copies(self) -> int:
        """Deliveries that one publish leads to."""
        return self.queues if self.exchange_type == "fanout" else 1


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What one load did in its measured time, without the warm-up. Rates are a second."""

    load: Load
    server: str
    seconds: float
    published_rate: float
    delivered_rate: float
    confirmed_rate: float = 0.0
    refused: int = 0
    """Publishes that were nacked."""
    missing: int = 0
    """Published, but neither delivered nor refused when the drain ended; dropped by a limit or by expiry, or lost."""
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
        """Messages a second through the broker: delivered ones; where nobody consumes, confirmed ones."""
        if self.load.consumers:
            return self.delivered_rate
        # Without confirms only the socket knows, and its buffers may hold a second's worth.
        return self.confirmed_rate if self.load.confirm_window else self.published_rate
