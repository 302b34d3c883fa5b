"""The limits for one user, one vhost or all, with RabbitMQ's words where it has such a limit.

Limits come from the configuration (`BrokerLimits`, where 0 means none) and from administrators, for a vhost or a user
(`PutLimits`, where a negative number means none). Both count.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pandomq.errors import ConnectionFault, not_allowed, precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost

MAX_CONNECTIONS: Final = "max-connections"
MAX_CHANNELS: Final = "max-channels"
MAX_QUEUES: Final = "max-queues"
VHOST_LIMITS: Final = (MAX_CONNECTIONS, MAX_QUEUES)
USER_LIMITS: Final = (MAX_CONNECTIONS, MAX_CHANNELS)


class Tally:
    """The connections and channels that a user has open, in all vhosts."""

    __slots__ = ("channel_count", "connection_count")

    def __init__(self) -> None:
        self.connection_count = 0
        self.channel_count = 0


def check_connection(broker: "Broker", user: str, vhost: "Vhost") -> None:
    """Raises ConnectionFault (530)."""
    limit = _reached(vhost.connection_count, broker.limits.connections_per_vhost_max, vhost.limits, MAX_CONNECTIONS)
    if limit is not None:
        raise not_allowed(
            f"access to vhost '{vhost.name}' refused for user '{user}': connection limit ({limit}) is reached"
        )
    tally = broker.tallies.get(user)
    count = 0 if tally is None else tally.connection_count
    limit = _reached(count, broker.limits.connections_per_user_max, _user_limits(broker, user), MAX_CONNECTIONS)
    if limit is not None:
        raise not_allowed(f"connection refused for user '{user}': user connection limit ({limit}) is reached")


def channel_refusal(client: "Client") -> ConnectionFault | None:
    """Why the client may not open another channel (530); None if it may."""
    count, count_max = len(client.channels), client.channel_max
    if count >= count_max > 0:
        return not_allowed(f"number of channels opened ({count}) has reached the negotiated channel_max ({count_max})")
    limit = _reached(client.tally.channel_count, 0, _user_limits(client.broker, client.user), MAX_CHANNELS)
    if limit is not None:
        return not_allowed(
            f"number of channels opened for user '{client.user}' has reached the maximum allowed user limit of {limit}"
        )
    return None


def check_queue(broker: "Broker", vhost: "Vhost", name: str) -> None:
    """For a new queue. Raises ChannelFault (406)."""
    limit = _reached(vhost.queue_count, 0, vhost.limits, MAX_QUEUES)
    if limit is not None:
        raise precondition_failed(
            f"cannot declare queue '{name}': queue limit in vhost '{vhost.name}' ({limit}) is reached"
        )
    queues_max = broker.limits.queues_max
    if queues_max and sum(other.queue_count for other in broker.state.vhosts.values()) >= queues_max:
        raise precondition_failed(f"cannot declare queue '{name}': queue limit in cluster ({queues_max}) is reached")


def check_binding(broker: "Broker", source: str, destination: str) -> None:
    """For a new binding. Raises ChannelFault (406)."""
    bindings_max = broker.limits.bindings_max
    if bindings_max and sum(vhost.router.binding_count for vhost in broker.state.vhosts.values()) >= bindings_max:
        raise precondition_failed(
            f"cannot bind '{destination}' to exchange '{source}': binding limit ({bindings_max}) is reached"
        )


def check_consumer(broker: "Broker", channel: "Channel", queue: "Queue") -> None:
    """Raises ConnectionFault (530) for too many on the channel, as RabbitMQ does, ChannelFault (406) for the others."""
    limits = broker.limits
    if len(channel.consumers) >= limits.consumers_per_channel_max > 0:
        raise not_allowed(f"reached maximum ({limits.consumers_per_channel_max}) of consumers per channel")
    for count, count_max in (
        (queue.kernel.consumer_count, limits.consumers_per_queue_max),
        (broker.consumer_count, limits.consumers_max),
    ):
        if count >= count_max > 0:
            raise precondition_failed(f"cannot consume from {queue.resource}: consumer limit ({count_max}) is reached")


def _user_limits(broker: "Broker", name: str) -> Mapping[str, int]:
    user = broker.state.users.get(name)
    return {} if user is None else user.limits


def _reached(count: int, configured: int, limits: Mapping[str, int], name: str) -> int | None:
    """The limit that allows no more; None if there is room."""
    if count >= configured > 0:
        return configured
    limit = limits.get(name, -1)
    return limit if count >= limit >= 0 else None
