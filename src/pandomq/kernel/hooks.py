"""What the kernel asks of the broker: the slow paths, called in the middle of a run.

A hook may close channels (Channel.open = False) and the session: the run skips what follows on those.
"""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pandomq.kernel._fast import Channel, Message, Queue, Session


class Hooks(Protocol):
    """Given to an Engine by the broker."""

    def publish(self, channel: "Channel", message: "Message", flags: int) -> None:
        """No valid plan, a special message, a flag other than MANDATORY, or a transaction. Does all of it: faults,
        routing, Routes.put, Engine.enqueue. (The channel's publish number was already counted.)"""

    def settle(self, channel: "Channel", method_id: int, tag: int, multiple: bool, requeue: bool) -> None:
        """The channel is in TRANSACTION mode."""

    def unknown_tag(self, channel: "Channel", method_id: int, tag: int) -> None:
        """A settlement named a tag that is not outstanding, and nothing was settled. As in RabbitMQ that goes for
        `multiple` as well; only tag 0 with `multiple` is fine even if nothing is outstanding."""

    def unknown_channel(self, session: "Session", number: int, class_id: int, method_id: int) -> None:
        """A publish or settlement on a channel that is not open. The rest of the run is dropped."""

    def fan_out(self, owner: Any, message: "Message") -> None:
        """Engine.fan_out has no valid plan for the message, or it is special. Does all of it, as `publish` does."""

    def redelivered_copy(self, message: "Message", delivery_count: int) -> "Message":
        """The message with its x-delivery-count header, for queues with counts_deliveries."""
        ...


class ReplayHooks(Protocol):
    """Given to Engine.replay."""

    def began(self, now_ms: int) -> None:
        """The batch's time; called first."""

    def find_queue(self, queue_id: int) -> "Queue | None":
        """None if it is not there any more. The answer is remembered until the entry's next command."""
        ...

    def restored(self, queue: "Queue", sequence: int, message: "Message") -> None:
        """The message is in this withdrawable queue."""

    def command(self, command: bytes) -> None:
        """What Engine.log_command had been given."""
