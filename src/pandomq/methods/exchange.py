"""The methods of class exchange (40), with RabbitMQ's bindings from exchange to exchange."""

import msgspec

from pandomq.methods.layout import TICKET, Bit, Method, ShortString, Table, method


@method(40, 10, synchronous=True, before=TICKET)
class ExchangeDeclare(Method, frozen=True):
    exchange: ShortString = ""
    type: ShortString = ""
    passive: Bit = False
    durable: Bit = False
    auto_delete: Bit = False
    internal: Bit = False
    no_wait: Bit = False
    arguments: Table = msgspec.field(default_factory=dict)


@method(40, 11)
class ExchangeDeclareOk(Method, frozen=True):
    pass


@method(40, 20, synchronous=True, before=TICKET)
class ExchangeDelete(Method, frozen=True):
    exchange: ShortString = ""
    if_unused: Bit = False
    no_wait: Bit = False


@method(40, 21)
class ExchangeDeleteOk(Method, frozen=True):
    pass


@method(40, 30, synchronous=True, before=TICKET)
class ExchangeBind(Method, frozen=True):
    destination: ShortString = ""
    source: ShortString = ""
    routing_key: ShortString = ""
    no_wait: Bit = False
    arguments: Table = msgspec.field(default_factory=dict)


@method(40, 31)
class ExchangeBindOk(Method, frozen=True):
    pass


@method(40, 40, synchronous=True, before=TICKET)
class ExchangeUnbind(Method, frozen=True):
    destination: ShortString = ""
    source: ShortString = ""
    routing_key: ShortString = ""
    no_wait: Bit = False
    arguments: Table = msgspec.field(default_factory=dict)


@method(40, 51)
class ExchangeUnbindOk(Method, frozen=True):
    pass
