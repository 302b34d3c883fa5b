"""The methods of class queue (50)."""

import msgspec

from pandomq.methods.layout import TICKET, Bit, Long, Method, ShortString, Table, method


@method(50, 10, synchronous=True, before=TICKET)
class QueueDeclare(Method, frozen=True):
    queue: ShortString = ""
    passive: Bit = False
    durable: Bit = False
    exclusive: Bit = False
    auto_delete: Bit = False
    no_wait: Bit = False
    arguments: Table = msgspec.field(default_factory=dict)


@method(50, 11)
class QueueDeclareOk(Method, frozen=True):
    queue: ShortString
    message_count: Long
    consumer_count: Long


@method(50, 20, synchronous=True, before=TICKET)
class QueueBind(Method, frozen=True):
    queue: ShortString = ""
    exchange: ShortString = ""
    routing_key: ShortString = ""
    no_wait: Bit = False
    arguments: Table = msgspec.field(default_factory=dict)


@method(50, 21)
class QueueBindOk(Method, frozen=True):
    pass


@method(50, 30, synchronous=True, before=TICKET)
class QueuePurge(Method, frozen=True):
    queue: ShortString = ""
    no_wait: Bit = False


@method(50, 31)
class QueuePurgeOk(Method, frozen=True):
    message_count: Long


@method(50, 40, synchronous=True, before=TICKET)
class QueueDelete(Method, frozen=True):
    queue: ShortString = ""
    if_unused: Bit = False
    if_empty: Bit = False
    no_wait: Bit = False


@method(50, 41)
class QueueDeleteOk(Method, frozen=True):
    message_count: Long


@method(50, 50, synchronous=True, before=TICKET)
class QueueUnbind(Method, frozen=True):
    queue: ShortString = ""
    exchange: ShortString = ""
    routing_key: ShortString = ""
    arguments: Table = msgspec.field(default_factory=dict)


@method(50, 51)
class QueueUnbindOk(Method, frozen=True):
    pass
