"""Checks the rights that `rights` lists, with RabbitMQ's texts for a refusal."""

from typing import TYPE_CHECKING, Final

from pandomq.broker.administration.rights import QUEUE, ROUTING_KEY
from pandomq.errors import access_refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.administration.permissions import Right
    from pandomq.broker.administration.rights import Operation
    from pandomq.broker.client import Client
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.errors import ChannelFault

TOPIC: Final = "topic"
_EXCHANGE: Final = "exchange"
_DEFAULT_EXCHANGE: Final = "amq.default"
"""The name of the default exchange in permission patterns."""


def demand(client: "Client", operation: "Operation", what: str, name: str) -> None:
    """Raises ChannelFault (403) unless the client's user has a right that the operation needs on this object."""
    kind = QUEUE if what == QUEUE else _EXCHANGE
    if not name and kind == _EXCHANGE:
        name = _DEFAULT_EXCHANGE
    needed, access = operation.needs[what], client.access
    if not any(access.allows(right, name) for right in needed):
        raise _refused(client, needed[0], f"{kind} '{name}'")


def demand_topic(client: "Client", operation: "Operation", exchange: "Exchange", routing_keys: "Sequence[str]") -> None:
    """Checks the routing keys, if the exchange is of type topic. Raises ChannelFault (403)."""
    access = client.access
    if not access.topics or exchange.type_name != TOPIC:
        return
    (right,) = operation.needs[ROUTING_KEY]
    for routing_key in routing_keys:
        if not access.allows_topic(right, exchange.name, routing_key):
            raise _refused(client, right, f"topic '{routing_key}' in exchange '{exchange.name}'")


def _refused(client: "Client", right: "Right", what: str) -> "ChannelFault":
    return access_refused(
        f"{right.name.lower()} access to {what} in vhost '{client.vhost.name}' refused for user '{client.user}'"
    )
