"""The questions that the kernel asks the broker, in the middle of a run."""

from typing import TYPE_CHECKING, Any

from pandomq import kernel
from pandomq.broker.publishing.content_header import entries_of, spans_of, with_headers
from pandomq.broker.publishing.publishing import publish, publish_numbered
from pandomq.errors import ChannelFault, ConnectionFault, channel_error, precondition_failed
from pandomq.fieldtable import encode_table
from pandomq.properties import read_headers

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel

BASIC = 60
PUBLISH = 40


class BrokerHooks:
    """The kernel's `Hooks`. Faults end here: what they close stops counting at once, and is removed after the run."""

    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def publish(self, channel: kernel.Channel, message: kernel.Message, flags: int) -> None:
        owner: Channel = channel.owner
        changes = self._broker.changes
        try:
            if _is_only_numbered(owner, message, flags) and publish_numbered(self._broker, owner, message, flags):
                return
            publish(self._broker, owner, message, flags)
        except ChannelFault as fault:
            fault.at(BASIC, PUBLISH)
            self._broker.faults.close_channel(owner, fault)
        except ConnectionFault as fault:
            fault.at(BASIC, PUBLISH)
            self._broker.faults.close_client(owner.client, fault)
        except Exception as error:
            self._broker.containment.close_in_run(owner.client, error, changes)

    def settle(self, channel: kernel.Channel, method_id: int, tag: int, multiple: bool, requeue: bool) -> None:
        owner: Channel = channel.owner
        assert owner.transaction is not None
        try:
            owner.transaction.settle(channel, method_id, tag, multiple, requeue)
        except ChannelFault as fault:
            fault.at(BASIC, method_id)
            self._broker.faults.close_channel(owner, fault)

    def unknown_tag(self, channel: kernel.Channel, method_id: int, tag: int) -> None:
        fault = precondition_failed(f"unknown delivery tag {tag}")
        fault.at(BASIC, method_id)
        self._broker.faults.close_channel(channel.owner, fault)

    def unknown_channel(self, session: kernel.Session, number: int, class_id: int, method_id: int) -> None:
        fault = channel_error("expected 'channel.open'")
        fault.at(class_id, method_id)
        self._broker.faults.close_client(session.owner, fault)

    def fan_out(self, owner: Any, message: kernel.Message) -> None:
        raise AssertionError("only a broker that is not the root fans out")

    def redelivered_copy(self, message: kernel.Message, delivery_count: int) -> kernel.Message:
        header = message.header
        spans = spans_of(header)
        if message.find_header(b"x-delivery-count") is None:
            entries = entries_of(header, spans)
        else:
            headers = read_headers(header)
            del headers["x-delivery-count"]
            entries = encode_table(headers)[4:]
        entries += encode_table({"x-delivery-count": delivery_count})[4:]
        return kernel.Message(message.routing, with_headers(header, spans, entries, keep_expiration=True), message.body)


def _is_only_numbered(channel: "Channel", message: kernel.Message, flags: int) -> bool:
    """The publisher's number is the only special property."""
    return (
        message.special == kernel.SPECIAL_PRODUCER
        and flags <= kernel.MANDATORY
        and not message.producer
        and channel.transaction is None
    )
