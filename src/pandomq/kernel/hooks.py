"""The calls from the kernel to the broker: the slow paths, called in the middle of a run.

A hook may close channels (Channel.open = False) and the session: the run skips later input for those.
"""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pandomq.kernel._fast import Channel, Message, Queue, Session


class Hooks(Protocol):
    """The broker passes an implementation to the Engine."""

    def publish(self, channel: "Channel", message: "Message", flags: int) -> None:
        """Called without a valid plan, for a special message, for a flag other than MANDATORY, and in a transaction.
        Does everything: faults, routing, Routes.put, Engine.enqueue. (The channel's publish number was already
        counted.)"""

    def settle(self, channel: "Channel", method_id: int, tag: int, multiple: bool, requeue: bool) -> None:
        """Called for a channel in TRANSACTION mode."""

    def unknown_tag(self, channel: "Channel", method_id: int, tag: int) -> None:
        """A settlement named a tag that is not outstanding, and nothing was settled. As in RabbitMQ this includes
        `multiple`; only tag 0 with `multiple` is valid even if nothing is outstanding."""

    def unknown_channel(self, session: "Session", number: int, class_id: int, method_id: int) -> None:
        """A publish or settlement on a channel that is not open. The rest of the run is dropped."""

    def fan_out(self, owner: Any, message: "Message") -> None:
        """Called if Engine.fan_out has no valid plan for the message, or if it is special. Does everything, like
        `publish`."""

    def redelivered_copy(self, message: "Message", delivery_count: int) -> "Message":
        """Returns the message with its x-delivery-count header, for queues with counts_deliveries."""
        ...


class ReplayHooks(Protocol):
    """Passed to Engine.replay."""

    def began(self, now_ms: int) -> None:
        """The batch's time; called first."""

    def find_queue(self, queue_id: int) -> "Queue | None":
        """None if the queue no longer exists. The answer is cached until the entry's next command."""
        ...

    def restored(self, queue: "Queue", sequence: int, message: "Message") -> None:
        """The message is in this withdrawable queue."""

    def command(self, command: bytes) -> None:
        """The bytes that were passed to Engine.log_command."""
