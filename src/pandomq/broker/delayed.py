"""Messages that wait for their time in an exchange of type x-delayed-message.

Each such exchange has one DelayedMessages (`exchange.waiting`), a destination like a queue: `match` leads to it while a message has
an x-delay above zero, so delayed messages are enqueued, logged and confirmed as all others are. Its kernel queue has no consumer.
After Engine.enqueue into such a destination the caller says `arrived`; after Engine.restore, `restored`. In a tick the caller takes
what is due (the dequeue is logged by that), routes it from `exchange` and enqueues it, in the same batch: nothing is lost between.
"""

from pandomq.kernel._fast import Message, Queue


class DelayedMessages:
    name: str  # of the exchange
    kernel: Queue  # hidden; logged if the exchange is durable; queue_id is its own

    def __init__(self, name: str, kernel: Queue) -> None: ...

    def arrived(self, message: Message, now_ms: int) -> None:
        """The message was just enqueued into `kernel`."""

    def restored(self, sequence: int, message: Message, enqueued_ms: int) -> None:
        """Replay put the message back under this sequence; `enqueued_ms` is the batch time of the entry that enqueued it."""

    def due(self, now_ms: int) -> list[Message]:
        """Takes the messages whose time has come, in order of time; their x-delay is negated, as the plugin for RabbitMQ does it,
        so that they are not delayed again when they are routed."""
        ...

    @property
    def next_due_ms(self) -> int:
        """NEVER_MS if nothing waits."""
        ...
