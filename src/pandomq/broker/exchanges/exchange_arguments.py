"""The valid arguments of exchange.declare, and when a second declare means the same exchange.

Raises the faults RabbitMQ 4 gives, with its texts. The caller checks names (amq.*, the default exchange) and
permissions; RabbitMQ checks the type first, then the name and the permissions, then the rest.
"""

from collections.abc import Mapping
from typing import Any

from pandomq.broker.exchanges.catalogue import TYPES
from pandomq.broker.exchanges.delayed import DELAYED_TYPE, DelayedExchange
from pandomq.broker.exchanges.exchange import ALTERNATE_EXCHANGE, Exchange
from pandomq.broker.field_text import type_name
from pandomq.broker.queues.equivalence import check_arguments, check_field
from pandomq.broker.queues.levels import check_replication
from pandomq.errors import precondition_failed
from pandomq.fieldtable import OctetString
from pandomq.methods import ExchangeDeclare


def check_type(name: str) -> None:
    """For every declare that is not passive, also of an exchange that exists. Raises ChannelFault (406)."""
    if name not in TYPES:
        raise precondition_failed(f"unknown exchange type '{name}'")


def check_declare(declare: ExchangeDeclare, vhost: str) -> None:
    """Checks the arguments of a new exchange of a known type. Raises ChannelFault (406)."""
    arguments = declare.arguments
    if ALTERNATE_EXCHANGE in arguments and not isinstance(arguments[ALTERNATE_EXCHANGE], str | OctetString):
        raise precondition_failed(
            f"invalid type '{type_name(arguments[ALTERNATE_EXCHANGE])}' for arg '{ALTERNATE_EXCHANGE}' "
            f"in {_resource(declare.exchange, vhost)}"
        )
    check_replication(arguments, _resource(declare.exchange, vhost))
    if declare.type == DelayedExchange.type_name:
        _check_delayed(arguments)
    else:
        TYPES[declare.type].check_arguments(arguments)


def check_equivalent(exchange: Exchange, declare: ExchangeDeclare, vhost: str) -> None:
    """For an exchange that exists: raises ChannelFault (406) unless the declare describes it.

    Of the arguments only the alternate exchange counts, as in RabbitMQ.
    """
    resource = _resource(exchange.name, vhost)
    check_field("type", resource, declare.type, exchange.type_name)
    check_field("durable", resource, declare.durable, exchange.durable)
    check_field("auto_delete", resource, declare.auto_delete, exchange.auto_delete)
    check_field("internal", resource, declare.internal, exchange.internal)
    check_arguments((ALTERNATE_EXCHANGE,), resource, declare.arguments, exchange.arguments)


def _check_delayed(arguments: Mapping[str, Any]) -> None:
    inner = arguments.get(DELAYED_TYPE)
    if not isinstance(inner, str) or inner == DelayedExchange.type_name:
        raise precondition_failed(f"Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type")
    check_type(inner)
    TYPES[inner].check_arguments(arguments)


def _resource(name: str, vhost: str) -> str:
    return f"exchange '{name}' in vhost '{vhost}'"
