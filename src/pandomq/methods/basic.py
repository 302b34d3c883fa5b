"""The methods of class basic (60), for publishers and consumers."""

import msgspec

from pandomq.methods.layout import (
    TICKET,
    Bit,
    Long,
    LongLong,
    LongString,
    Method,
    Short,
    ShortString,
    Table,
    WireType,
    method,
)


@method(60, 10, synchronous=True)
class BasicQos(Method, frozen=True):
    prefetch_size: Long = 0
    prefetch_count: Short = 0
    global_: Bit = False


@method(60, 11)
class BasicQosOk(Method, frozen=True):
    pass


@method(60, 20, synchronous=True, before=TICKET)
class BasicConsume(Method, frozen=True):
    queue: ShortString = ""
    consumer_tag: ShortString = ""
    no_local: Bit = False
    no_ack: Bit = False
    exclusive: Bit = False
    no_wait: Bit = False
    arguments: Table = msgspec.field(default_factory=dict)


@method(60, 21)
class BasicConsumeOk(Method, frozen=True):
    consumer_tag: ShortString


@method(60, 30, synchronous=True)
class BasicCancel(Method, frozen=True):
    consumer_tag: ShortString = ""
    no_wait: Bit = False


@method(60, 31)
class BasicCancelOk(Method, frozen=True):
    consumer_tag: ShortString


@method(60, 40, has_content=True, before=TICKET)
class BasicPublish(Method, frozen=True):
    exchange: ShortString = ""
    routing_key: ShortString = ""
    mandatory: Bit = False
    immediate: Bit = False


@method(60, 50, has_content=True)
class BasicReturn(Method, frozen=True):
    reply_code: Short
    reply_text: ShortString
    exchange: ShortString
    routing_key: ShortString


@method(60, 60, has_content=True)
class BasicDeliver(Method, frozen=True):
    consumer_tag: ShortString
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortString
    routing_key: ShortString


@method(60, 70, synchronous=True, before=TICKET)
class BasicGet(Method, frozen=True):
    queue: ShortString = ""
    no_ack: Bit = False


@method(60, 71, has_content=True)
class BasicGetOk(Method, frozen=True):
    delivery_tag: LongLong
    redelivered: Bit
    exchange: ShortString
    routing_key: ShortString
    message_count: Long


@method(60, 72, before=(WireType.SHORT_STRING,))
class BasicGetEmpty(Method, frozen=True):
    pass


@method(60, 80)
class BasicAck(Method, frozen=True):
    delivery_tag: LongLong = 0
    multiple: Bit = False


@method(60, 90)
class BasicReject(Method, frozen=True):
    delivery_tag: LongLong = 0
    requeue: Bit = False


@method(60, 100)
class BasicRecoverAsync(Method, frozen=True):
    requeue: Bit = False


@method(60, 110, synchronous=True)
class BasicRecover(Method, frozen=True):
    requeue: Bit = False


@method(60, 111)
class BasicRecoverOk(Method, frozen=True):
    pass


@method(60, 120)
class BasicNack(Method, frozen=True):
    delivery_tag: LongLong = 0
    multiple: Bit = False
    requeue: Bit = False


@method(60, 250)
class BasicSettle(Method, frozen=True):
    """Between brokers only: settles messages by their places (rows, see `kernel.constants`), and requests the number
    back when that, and all acks before it on the channel, are committed. 0 requests no reply."""

    number: LongLong = 0
    rows: LongString = b""


@method(60, 251)
class BasicSettleOk(Method, frozen=True):
    number: LongLong


@method(60, 252)
class BasicHeld(Method, frozen=True):
    """Between brokers only: the number of unsettled deliveries of earlier roots that the client has for this consumer.
    There is no reply."""

    consumer_tag: ShortString
    count: Long
