"""Names for the numbers and strings that must not be mixed up.

Each is the plain type at run time; only the type checker tells them apart.
"""

from typing import NewType

Epoch = NewType("Epoch", int)
"""The number of a forced promotion; the first component by which logs compare."""

Term = NewType("Term", int)
"""The number of an election."""

LogIndex = NewType("LogIndex", int)
"""An entry's place in the log; the first entry has index 1, 0 means before the first."""

Sequence = NewType("Sequence", int)
"""A message's number within its queue; a stream's offset is this number."""

NodeName = NewType("NodeName", str)
ClusterId = NewType("ClusterId", str)

VhostName = NewType("VhostName", str)
UserName = NewType("UserName", str)
QueueName = NewType("QueueName", str)
ExchangeName = NewType("ExchangeName", str)
RoutingKey = NewType("RoutingKey", str)
PolicyName = NewType("PolicyName", str)

ConnectionId = NewType("ConnectionId", int)
"""A connection's number within one broker process; never used twice while the process lives."""

ChannelId = NewType("ChannelId", int)
"""A channel's number within its connection; 0 is the connection itself."""

ConsumerTag = NewType("ConsumerTag", str)

DeliveryTag = NewType("DeliveryTag", int)
"""Counts a channel's deliveries; the first is 1, and 0 in an ack means all so far."""

PublishTag = NewType("PublishTag", int)
"""Counts a channel's publishes since confirm.select; the first is 1."""
