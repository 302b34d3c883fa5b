"""Mandatory messages that no queue took go back to their publishers."""

from typing import TYPE_CHECKING, Final

from pandomq.broker.containment import StateInDoubt
from pandomq.methods import BasicReturn

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker

NO_ROUTE: Final = 312


def return_unroutable(broker: "Broker") -> None:
    """To be called before the confirms of returned messages, and before the reply to the publisher's next request."""
    returned = list(broker.engine.returned)
    broker.engine.returned.clear()
    for channel, message, _flags in returned:
        if channel.open:
            try:
                method = BasicReturn(NO_ROUTE, "NO_ROUTE", message.exchange, message.routing_key)
                channel.owner.reply_with_content(method, message)
            except Exception as error:
                # Another client's input may have led here, and the other messages are lost.
                raise StateInDoubt(channel.owner.client) from error
