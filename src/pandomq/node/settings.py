"""A node's settings at its start: the configuration's values, checked."""

from pandomq import limits
from pandomq.broker.administration.passwords import LOG_COST
from pandomq.broker.limits import BrokerLimits
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.data.places import DataPlaces
from pandomq.wire import sasl


class NodeSettings(BrokerLimits, frozen=True, kw_only=True):
    """The configuration's limits are among them (`ConfiguredLimits`)."""

    name: str = "n1"
    product: str = "RabbitMQ"
    """The product name in the server properties. Some clients use features of RabbitMQ only where they find its
    name."""
    platform: str = "Python"
    """The interpreter's name in the server properties."""
    user: str = "guest"
    password: str = "guest"
    password_log_cost: int = LOG_COST
    """The cost of the first user's hash. Simulations, which restart brokers often, use a smaller one."""
    loopback_only_users: tuple[str, ...] = ("guest",)
    trusted_proxies: tuple[str, ...] = ("127.0.0.0/8", "::1/128")
    """Addresses and networks of proxies whose information about the client's address is trusted, over AMQP and HTTP."""
    http_host_names: tuple[str, ...] = ()
    """Names under which the HTTP API accepts changes, beside addresses and the machine's name."""
    own_key: bytes = b""
    """Drawn at each start and written to the broker's directory: a login by it comes from a reader of that
    directory."""
    mechanisms: tuple[str, ...] = sasl.MECHANISMS
    """The login mechanisms. EXTERNAL has to be listed to allow certificates: one that an authority signed for other
    purposes should not be enough to log in, and some clients prefer it to the password they were given."""
    cluster: ClusterSettings = ClusterSettings()
    data: DataPlaces = DataPlaces()

    def __post_init__(self) -> None:
        if not limits.FRAME_BYTES_MIN <= self.frame_bytes_max:
            raise ValueError(f"frame_bytes_max must be at least {limits.FRAME_BYTES_MIN}, not {self.frame_bytes_max}")
        if not 1 <= self.channel_max <= limits.CHANNEL_ID_MAX:
            raise ValueError(f"channel_max must be between 1 and {limits.CHANNEL_ID_MAX}, not {self.channel_max}")


def broker_limits(settings: NodeSettings) -> BrokerLimits:
    """The limits among the settings; those on transactions depend on the memory watermark, too."""
    fields = {name: getattr(settings, name) for name in BrokerLimits.__struct_fields__}
    transactions_bytes_max = settings.memory_bytes_max // limits.TRANSACTION_MEMORY_PARTS
    of_user = _smaller(settings.transaction_per_user_bytes_max, transactions_bytes_max // 2)
    own = {"transactions_bytes_max": transactions_bytes_max, "transaction_per_user_bytes_max": of_user}
    return BrokerLimits(**{**fields, **own})


def _smaller(configured: int, share: int) -> int:
    """0 means none."""
    return min(configured, share) if configured else share
