"""Class exchange."""

from typing import TYPE_CHECKING

from pandomq.broker.administration.access import demand, demand_topic
from pandomq.broker.administration.quotas import check_binding
from pandomq.broker.administration.rights import (
    ALTERNATE,
    DESTINATION,
    EXCHANGE,
    EXCHANGE_BIND,
    EXCHANGE_DECLARE,
    EXCHANGE_DECLARE_ALTERNATE,
    EXCHANGE_DECLARE_PASSIVE,
    EXCHANGE_DELETE,
    EXCHANGE_UNBIND,
    SOURCE,
)
from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.exchanges.delayed import DelayedExchange
from pandomq.broker.exchanges.exchange import ALTERNATE_EXCHANGE
from pandomq.broker.exchanges.exchange_arguments import check_declare, check_equivalent, check_type
from pandomq.broker.field_text import name_of
from pandomq.broker.log.commands import BindExchange, DeclareExchange, UnbindExchange
from pandomq.broker.naming import check_not_default, check_not_reserved, without_line_ends
from pandomq.broker.queues.removal import delete_exchange, delete_orphans
from pandomq.errors import access_refused, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.methods import (
    ExchangeBind,
    ExchangeBindOk,
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    ExchangeUnbind,
    ExchangeUnbindOk,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel


def declare(broker: "Broker", channel: "Channel", method: ExchangeDeclare) -> None:
    client = channel.client
    vhost = client.vhost
    name = without_line_ends(method.exchange)
    if not method.passive:
        check_type(method.type)
    check_not_default(name)
    if method.passive:
        demand(client, EXCHANGE_DECLARE_PASSIVE, EXCHANGE, name)
        vhost.exchange(name)
        if not method.no_wait:
            channel.reply_when_settled(ExchangeDeclareOk())
        return
    demand(client, EXCHANGE_DECLARE, EXCHANGE, name)
    if name in vhost.router.exchanges:
        check_equivalent(vhost.router.exchanges[name], method, vhost.name)
    else:
        check_not_reserved("exchange", name)
        check_declare(method, vhost.name)
        if ALTERNATE_EXCHANGE in method.arguments:
            demand(client, EXCHANGE_DECLARE_ALTERNATE, EXCHANGE, name)
            alternate = name_of(method.arguments[ALTERNATE_EXCHANGE])
            demand(client, EXCHANGE_DECLARE_ALTERNATE, ALTERNATE, alternate)
        broker.issue(
            DeclareExchange(
                vhost.name,
                name,
                method.type,
                method.durable,
                method.auto_delete,
                method.internal,
                encode_table(method.arguments),
                broker.state.next_queue_id if method.type == DelayedExchange.type_name else 0,
            )
        )
    if not method.no_wait:
        channel.reply_when_settled(ExchangeDeclareOk())


def delete(broker: "Broker", channel: "Channel", method: ExchangeDelete) -> None:
    client = channel.client
    vhost = client.vhost
    name = without_line_ends(method.exchange)
    check_not_default(name)
    if name.startswith("amq."):
        raise access_refused(f"deletion of system exchange '{name}' in vhost '{vhost.name}' not allowed")
    demand(client, EXCHANGE_DELETE, EXCHANGE, name)
    exchange = vhost.router.exchanges.get(name)
    if exchange is not None:
        if method.if_unused and exchange.binding_count:
            raise precondition_failed(f"exchange '{name}' in vhost '{vhost.name}' in use")
        delete_exchange(broker, vhost, exchange)
    if not method.no_wait:
        channel.reply_when_settled(ExchangeDeleteOk())


def bind(broker: "Broker", channel: "Channel", method: ExchangeBind) -> None:
    _check_ends(channel, method)
    vhost = channel.client.vhost
    source, destination = vhost.exchange(method.source), vhost.exchange(method.destination)
    source.check_binding(method.routing_key, method.arguments)
    binding = Binding.to_exchange(method.source, destination, method.routing_key, method.arguments)
    if binding not in source.bindings():
        check_binding(broker, method.source, method.destination)
        arguments = encode_table(method.arguments)
        broker.issue(BindExchange(vhost.name, method.source, method.destination, method.routing_key, arguments))
    if not method.no_wait:
        channel.reply_when_settled(ExchangeBindOk())


def unbind(broker: "Broker", channel: "Channel", method: ExchangeUnbind) -> None:
    """Unbinding what is not bound, or does not exist, is no error."""
    _check_ends(channel, method)
    vhost = channel.client.vhost
    source = vhost.router.exchanges.get(method.source)
    destination = vhost.router.exchanges.get(method.destination)
    if source is not None and destination is not None:
        binding = Binding.to_exchange(method.source, destination, method.routing_key, method.arguments)
        if binding in source.bindings():
            arguments = encode_table(method.arguments)
            command = UnbindExchange(vhost.name, method.source, method.destination, method.routing_key, arguments)
            broker.issue(command)
            delete_orphans(broker, vhost)
    if not method.no_wait:
        channel.reply_when_settled(ExchangeUnbindOk())


def _check_ends(channel: "Channel", method: ExchangeBind | ExchangeUnbind) -> None:
    operation = EXCHANGE_BIND if isinstance(method, ExchangeBind) else EXCHANGE_UNBIND
    demand(channel.client, operation, DESTINATION, method.destination)
    check_not_default(method.destination)
    check_not_default(method.source)
    demand(channel.client, operation, SOURCE, method.source)
    source = channel.client.vhost.router.exchanges.get(method.source)
    if source is not None:
        demand_topic(channel.client, operation, source, (method.routing_key,))
