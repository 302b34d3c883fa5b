"""Where rights are asked for, with RabbitMQ's words for a refusal."""

from typing import TYPE_CHECKING, Final

from pandomq.broker.permissions import Right
from pandomq.errors import access_refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.client import Client
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.errors import ChannelFault

TOPIC: Final = "topic"
_DEFAULT_EXCHANGE: Final = "amq.default"
"""What patterns know the exchange without a name by."""


def demand(client: "Client", right: Right, kind: str, name: str) -> None:
    """Raises ChannelFault (403) unless the client's user has this right on the queue or exchange."""
    if not name and kind == "exchange":
        name = _DEFAULT_EXCHANGE
    if not client.access.allows(right, name):
        raise _refused(client, right, f"{kind} '{name}'")


def demand_any(client: "Client", kind: str, name: str) -> None:
    """For who only asks whether it is there: any right will do. Raises ChannelFault (403)."""
    access = client.access
    if not (access.allows(Right.READ, name) or access.allows(Right.WRITE, name)):
        demand(client, Right.CONFIGURE, kind, name)


def demand_topic(client: "Client", right: Right, exchange: "Exchange", routing_keys: "Sequence[str]") -> None:
    """On the routing keys, if the exchange is of type topic. Raises ChannelFault (403)."""
    access = client.access
    if not access.topics or exchange.type_name != TOPIC:
        return
    for routing_key in routing_keys:
        if not access.allows_topic(right, exchange.name, routing_key):
            raise _refused(client, right, f"topic '{routing_key}' in exchange '{exchange.name}'")


def _refused(client: "Client", right: Right, what: str) -> "ChannelFault":
    return access_refused(
        f"{right.name.lower()} access to {what} in vhost '{client.vhost.name}' refused for user '{client.user}'"
    )
