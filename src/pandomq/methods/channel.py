"""The methods of class channel (20), and of class access (30).

0-9-1 has removed access, but old clients still request a ticket and wait for an answer.
"""

from pandomq.methods.layout import Bit, LongString, Method, Short, ShortString, method


@method(20, 10, synchronous=True)
class ChannelOpen(Method, frozen=True):
    out_of_band: ShortString = ""
    """AMQP 0-9-1 does not use it. A front puts its client's producer and count here."""


@method(20, 11)
class ChannelOpenOk(Method, frozen=True):
    channel_id: LongString = b""
    """In the reply to a front: the last number of that producer that the log has."""


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
