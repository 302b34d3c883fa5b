"""The methods of class channel (20), and of class access (30).

Access is gone since 0-9-1, but old clients still ask for a ticket and wait for an answer.
"""

from pandomq.methods.layout import Bit, LongString, Method, Short, ShortString, method


@method(20, 10, synchronous=True)
class ChannelOpen(Method, frozen=True):
    out_of_band: ShortString = ""
    """AMQP 0-9-1 has no use for it. Brokers that stand for a client name its producer and count here."""


@method(20, 11)
class ChannelOpenOk(Method, frozen=True):
    channel_id: LongString = b""
    """Here they are told how far the log knows that producer."""


@method(20, 20, synchronous=True)
class ChannelFlow(Method, frozen=True):
    active: Bit


@method(20, 21)
class ChannelFlowOk(Method, frozen=True):
    active: Bit


@method(20, 40, synchronous=True)
class ChannelClose(Method, frozen=True):
    reply_code: Short
    reply_text: ShortString
    failed_class_id: Short
    failed_method_id: Short


@method(20, 41)
class ChannelCloseOk(Method, frozen=True):
    pass


@method(30, 10, synchronous=True)
class AccessRequest(Method, frozen=True):
    realm: ShortString
    exclusive: Bit
    passive: Bit
    active: Bit
    write: Bit
    read: Bit


@method(30, 11)
class AccessRequestOk(Method, frozen=True):
    ticket: Short
