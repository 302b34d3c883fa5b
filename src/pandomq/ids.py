"""Types for numbers and strings that must not be confused.

At run time each is the plain type; only the type checker distinguishes them.
"""

from typing import NewType

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
