"""Which types of exchange there are, and which exchanges every vhost has from the start."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pandomq.broker.exchanges.consistent_hash import ConsistentHashExchange
from pandomq.broker.exchanges.default import DefaultExchange
from pandomq.broker.exchanges.delayed import DELAYED_TYPE, DelayedExchange
from pandomq.broker.exchanges.direct import DirectExchange
from pandomq.broker.exchanges.exchange import Exchange, ExchangeTraits, QueueDestination
from pandomq.broker.exchanges.fanout import FanoutExchange
from pandomq.broker.exchanges.headers import HeadersExchange
from pandomq.broker.exchanges.random import RandomExchange
from pandomq.broker.exchanges.topic import TopicExchange

if TYPE_CHECKING:
    from random import Random

TYPES: Final[dict[str, type[Exchange]]] = {
    exchange_type.type_name: exchange_type
    for exchange_type in (
        DirectExchange,
        FanoutExchange,
        TopicExchange,
        HeadersExchange,
        ConsistentHashExchange,
        RandomExchange,
        DelayedExchange,
    )
}
"""The types that exchange.declare accepts."""

TRACE_EXCHANGE: Final = "amq.rabbitmq.trace"

_PREDECLARED: Final = (
    ("amq.direct", DirectExchange, ExchangeTraits(durable=True)),
    ("amq.fanout", FanoutExchange, ExchangeTraits(durable=True)),
    ("amq.topic", TopicExchange, ExchangeTraits(durable=True)),
    ("amq.headers", HeadersExchange, ExchangeTraits(durable=True)),
    ("amq.match", HeadersExchange, ExchangeTraits(durable=True)),
    (TRACE_EXCHANGE, TopicExchange, ExchangeTraits(durable=True, internal=True)),
)


def make_exchange(
    name: str,
    type_name: str,
    *,
    durable: bool = False,
    auto_delete: bool = False,
    internal: bool = False,
    arguments: Mapping[str, Any],
    random: "Random",
) -> Exchange:
    """For a type and arguments that `exchange_arguments.check_declare` accepted."""
    return _make(name, type_name, ExchangeTraits(durable, auto_delete, internal, arguments), random)


def _make(name: str, type_name: str, traits: ExchangeTraits, random: "Random") -> Exchange:
    if type_name == DelayedExchange.type_name:
        return DelayedExchange(name, traits, _make(name, traits.arguments[DELAYED_TYPE], traits, random))
    if type_name == RandomExchange.type_name:
        return RandomExchange(name, traits, random)
    return TYPES[type_name](name, traits)


def predeclared(find_queue: Callable[[str], QueueDestination | None]) -> list[Exchange]:
    """The default exchange first, then the amq.* ones; `find_queue` returns a queue by name."""
    others = (exchange_type(name, traits) for name, exchange_type, traits in _PREDECLARED)
    return [DefaultExchange(find_queue), *others]
