"""Deliveries of an earlier root that a client of another broker has not settled yet: they count for its prefetch.

That broker sends for each consumer, before the consumer begins here, how many there are, and again whenever the number
changes. Those of cancelled consumers count for the channel alone; they are given under an empty tag.
"""

from typing import TYPE_CHECKING

from pandomq.errors import not_implemented
from pandomq.methods import BasicHeld

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel


def note_held(broker: "Broker", channel: "Channel", method: BasicHeld) -> None:
    if channel.client.origin is None:
        raise not_implemented(f"unknown method {method.class_id}.{method.method_id}")
    tag, count = method.consumer_tag, method.count
    channel.kernel.owe(channel.consumers.get(tag), count - channel.held_before.get(tag, 0))
    channel.held_before = {**channel.held_before, tag: count}


def count_held(channel: "Channel", tag: str, consumer: "kernel.Consumer") -> None:
    """The consumer has just begun. So far its deliveries counted for the channel alone."""
    count = channel.held_before.get(tag, 0)
    if count:
        channel.kernel.owe(None, -count)
        channel.kernel.owe(consumer, count)
