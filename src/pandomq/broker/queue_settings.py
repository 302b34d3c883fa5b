"""What a queue's arguments mean, read once when it is declared, and how the kernel's queue is told."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pandomq import kernel
from pandomq.broker.queue_arguments import QUORUM, queue_type

DELIVERY_LIMIT: Final = 20
"""Of quorum queues that name none, as in RabbitMQ 4."""

_OVERFLOWS: Final = {
    "drop-head": kernel.DROP_HEAD,
    "reject-publish": kernel.REJECT_PUBLISH,
    "reject-publish-dlx": kernel.REJECT_PUBLISH_DEAD_LETTER,
}


class QueueSettings(msgspec.Struct, frozen=True, gc=False):
    """-1 and None stand for what was not asked for."""

    type: str = "classic"
    ttl_ms: int = -1
    expires_ms: int = -1
    length_max: int = -1
    bytes_max: int = -1
    overflow: str = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None
    priority_max: int = 0
    delivery_limit: int = -1
    single_active: bool = False
    last_value_key: str | None = None
    consumer_timeout_ms: int = -1
    replicate: str | None = None

    @property
    def counts_deliveries(self) -> bool:
        return self.type == QUORUM or self.delivery_limit >= 0

    def configure(self, queue: kernel.Queue) -> None:
        queue.configure(
            ttl_ms=self.ttl_ms,
            length_max=self.length_max,
            bytes_max=self.bytes_max,
            overflow=_OVERFLOWS[self.overflow],
            dead_letters=self.dead_letter_exchange is not None,
            priority_max=self.priority_max,
            delivery_limit=self.delivery_limit,
            counts_deliveries=self.counts_deliveries,
            last_value_key=None if self.last_value_key is None else self.last_value_key.encode(),
            single_active=self.single_active,
        )


PLAIN: Final = QueueSettings()
"""Of all queues without arguments; they share it."""


def settings_of(arguments: Mapping[str, Any]) -> QueueSettings:
    """From arguments that `queue_arguments.check_new` accepted."""
    if not arguments:
        return PLAIN
    kind = queue_type(arguments)
    return QueueSettings(
        type=kind,
        ttl_ms=int(arguments.get("x-message-ttl", -1)),
        expires_ms=int(arguments.get("x-expires", -1)),
        length_max=int(arguments.get("x-max-length", -1)),
        bytes_max=int(arguments.get("x-max-length-bytes", -1)),
        overflow=arguments.get("x-overflow", "drop-head"),
        dead_letter_exchange=arguments.get("x-dead-letter-exchange"),
        dead_letter_key=arguments.get("x-dead-letter-routing-key"),
        priority_max=int(arguments.get("x-max-priority", 0)),
        delivery_limit=max(-1, int(arguments.get("x-delivery-limit", DELIVERY_LIMIT if kind == QUORUM else -1))),
        single_active=arguments.get("x-single-active-consumer", False),
        last_value_key=arguments.get("x-last-value-key"),
        consumer_timeout_ms=int(arguments.get("x-consumer-timeout", -1)),
        replicate=arguments.get("x-replicate", arguments.get("qpid.replicate")),
    )
