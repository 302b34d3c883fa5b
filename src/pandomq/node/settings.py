"""What a node is told when it starts; the configuration's values, checked."""

import msgspec

from pandomq import limits
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.passwords import LOG_COST
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.data.places import DataPlaces
from pandomq.wire import sasl


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str = "n1"
    product: str = "PandoMQ"
    """What the server properties call us; for clients that insist on another broker's name."""
    user: str = "guest"
    password: str = "guest"
    password_log_cost: int = LOG_COST
    """Of the first user's hash. Whoever restarts a broker ten times in a moment takes a smaller one."""
    loopback_only_users: tuple[str, ...] = ("guest",)
    mechanisms: tuple[str, ...] = sasl.MECHANISMS
    """How clients may log in. EXTERNAL has to be listed to let certificates do: whom an authority signed for other ends
    should not come in by that alone, and some clients prefer it to the password they were given."""
    heartbeat_s: int = limits.HEARTBEAT_S
    channel_max: int = limits.CHANNEL_MAX
    frame_bytes_max: int = limits.FRAME_BYTES_MAX
    message_bytes_max: int = limits.MESSAGE_BYTES_MAX
    connections_max: int = limits.CONNECTIONS_MAX
    connections_per_user_max: int = 0
    """0 means no limit, here and below."""
    connections_per_vhost_max: int = 0
    queues_max: int = 0
    """Queues, bindings and consumers are counted over all vhosts."""
    bindings_max: int = 0
    configuration_bytes_max: int = limits.CONFIGURATION_BYTES_MAX
    consumers_max: int = 0
    consumers_per_channel_max: int = 0
    consumers_per_queue_max: int = 0
    producers_max: int = limits.NAMED_PRODUCERS_MAX
    producer_age_ms: int = limits.NAMED_PRODUCER_AGE_MS
    handshake_ms_max: int = limits.HANDSHAKE_MS_MAX
    consumer_timeout_ms: int = limits.CONSUMER_TIMEOUT_MS
    memory_bytes_max: int = 4 * 1024 * limits.MIB
    """The watermark above which publishers are held back."""
    paging_bytes: int = limits.PAGING_BYTES
    """Ready messages that take more memory leave it for the disk, if there is one; 0: they stay."""
    cluster: ClusterSettings = ClusterSettings()
    data: DataPlaces = DataPlaces()

    def __post_init__(self) -> None:
        if not limits.FRAME_BYTES_MIN <= self.frame_bytes_max:
            raise ValueError(f"frame_bytes_max must be at least {limits.FRAME_BYTES_MIN}, not {self.frame_bytes_max}")
        if not 1 <= self.channel_max <= limits.CHANNEL_ID_MAX:
            raise ValueError(f"channel_max must be between 1 and {limits.CHANNEL_ID_MAX}, not {self.channel_max}")


def broker_limits(settings: NodeSettings) -> BrokerLimits:
    return BrokerLimits(
        message_bytes_max=settings.message_bytes_max,
        consumer_timeout_ms=settings.consumer_timeout_ms,
        connections_per_user_max=settings.connections_per_user_max,
        connections_per_vhost_max=settings.connections_per_vhost_max,
        queues_max=settings.queues_max,
        bindings_max=settings.bindings_max,
        configuration_bytes_max=settings.configuration_bytes_max,
        consumers_max=settings.consumers_max,
        consumers_per_channel_max=settings.consumers_per_channel_max,
        consumers_per_queue_max=settings.consumers_per_queue_max,
        producers_max=settings.producers_max,
        producer_age_ms=settings.producer_age_ms,
    )
