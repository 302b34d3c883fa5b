"""The combined settings of a queue's arguments and its policy, computed when either changes, and passed to the kernel.

As in RabbitMQ: of two numbers the smaller one counts, otherwise the argument does (except that a quorum queue's
overflow is the policy's).
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pandomq import kernel
from pandomq.broker.administration.policy_definition import Definition, stricter_delivery_limit
from pandomq.broker.queues.queue_arguments import (
    CLASSIC,
    CONFIGURATION_ONLY,
    NO_REPLICATION,
    QUORUM,
    STREAM,
    queue_type,
)
from pandomq.broker.streams.ages import age_ms
from pandomq.broker.streams.arguments import COMPRESSION, SEGMENT_BYTES, UNARCHIVED_BYTES
from pandomq.broker.streams.packing import NONE
from pandomq.limits import (
    EXPIRATION_MS_MAX,
    STREAM_CHUNK_AGE_MS,
    STREAM_CHUNK_AGE_MS_MIN,
    STREAM_CHUNK_BYTES,
    STREAM_CHUNKS_PER_AGE,
    STREAM_SEGMENT_BYTES,
    STREAM_SEGMENT_BYTES_MAX,
    STREAM_UNARCHIVED_BYTES_MAX,
)

DELIVERY_LIMIT: Final = 20
"""For quorum queues that name none, as in RabbitMQ 4."""

LENGTH_MAX: Final = 2**62
"""A policy may name larger numbers; no queue is that long."""

_OVERFLOWS: Final = {
    "drop-head": kernel.DROP_HEAD,
    "reject-publish": kernel.REJECT_PUBLISH,
    "reject-publish-dlx": kernel.REJECT_PUBLISH_DEAD_LETTER,
}


class QueueSettings(msgspec.Struct, frozen=True, gc=False):
    """-1 and None stand for settings that were not given."""

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
    max_age_ms: int = -1
    """The maximum age of messages in a stream."""
    segment_bytes: int = STREAM_SEGMENT_BYTES
    archive: str | None = None
    """The name under which an archive stores its progress: messages that it has not read yet stay in the stream,"""
    unarchived_bytes_max: int = STREAM_UNARCHIVED_BYTES_MAX
    """unless the stream is larger than this."""
    compression: str = NONE
    """The compression of a stream's sealed chunks."""

    @property
    def _chunk_age_ms(self) -> int:
        if self.max_age_ms < 0:
            return STREAM_CHUNK_AGE_MS
        return min(STREAM_CHUNK_AGE_MS, max(STREAM_CHUNK_AGE_MS_MIN, self.max_age_ms // STREAM_CHUNKS_PER_AGE))

    @property
    def counts_deliveries(self) -> bool:
        return self.type == QUORUM or self.delivery_limit >= 0

    @property
    def refuses(self) -> bool:
        """A message without room is refused, and its publisher gets a nack."""
        return self.overflow != "drop-head"

    @property
    def replicates_less(self) -> bool:
        """Whether only the root of a cluster is to have the messages."""
        return self.type == CLASSIC and self.replicate in (NO_REPLICATION, CONFIGURATION_ONLY)

    def configure(self, queue: kernel.Queue, *, local: bool) -> None:
        if self.type == STREAM:
            # No chunk is larger than the part that leaves the stream at a time, if possible.
            chunk_bytes = min(STREAM_CHUNK_BYTES, self.segment_bytes)
            queue.configure(stream=True, chunk_bytes=chunk_bytes, chunk_age_ms=self._chunk_age_ms)
            return
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
            synced=self.type == QUORUM,
            local=local,
        )


PLAIN: Final = QueueSettings()
"""Shared by all queues without arguments and policy."""
_NO_POLICY: Final[Definition] = {}


def settings_of(arguments: Mapping[str, Any], definition: Definition = _NO_POLICY) -> QueueSettings:
    """Computes settings from arguments that `queue_arguments.check_new` accepted, and a policy's definition."""
    if not arguments and not definition:
        return PLAIN
    kind = queue_type(arguments)
    choices = (arguments.get("x-overflow"), definition.get("overflow"))
    overflow = choices[kind == QUORUM] or choices[kind != QUORUM] or "drop-head"
    return QueueSettings(
        type=kind,
        ttl_ms=_least("message-ttl", arguments, definition, EXPIRATION_MS_MAX),
        expires_ms=_least("expires", arguments, definition, EXPIRATION_MS_MAX),
        length_max=_least("max-length", arguments, definition, LENGTH_MAX),
        bytes_max=_least("max-length-bytes", arguments, definition, LENGTH_MAX),
        overflow=overflow,
        dead_letter_exchange=_argument_first("dead-letter-exchange", arguments, definition),
        dead_letter_key=_argument_first("dead-letter-routing-key", arguments, definition),
        priority_max=int(arguments.get("x-max-priority", 0)),
        delivery_limit=_delivery_limit(kind, arguments, definition),
        single_active=arguments.get("x-single-active-consumer", False),
        last_value_key=arguments.get("x-last-value-key"),
        consumer_timeout_ms=_least("consumer-timeout", arguments, definition, EXPIRATION_MS_MAX),
        replicate=_replicate(arguments, definition),
        max_age_ms=_max_age(arguments, definition),
        segment_bytes=_segment_bytes(arguments, definition),
        archive=_argument_first("retain-until-archived", arguments, definition),
        unarchived_bytes_max=_unarchived_bytes(arguments, definition),
        compression=arguments.get(COMPRESSION, definition.get("stream-compression", NONE)),
    )


def _least(key: str, arguments: Mapping[str, Any], definition: Definition, value_max: int) -> int:
    values = [int(values[name]) for name, values in ((f"x-{key}", arguments), (key, definition)) if name in values]
    return min(*values, value_max) if values else -1


def _argument_first(key: str, arguments: Mapping[str, Any], definition: Definition) -> str | None:
    value: str | None = arguments.get(f"x-{key}", definition.get(key))
    return value


def _delivery_limit(kind: str, arguments: Mapping[str, Any], definition: Definition) -> int:
    default = DELIVERY_LIMIT if kind == QUORUM else -1
    mine, policy = arguments.get("x-delivery-limit"), definition.get("delivery-limit")
    if mine is not None and policy is not None:
        limit = stricter_delivery_limit(mine, policy)
    else:
        limit = next((value for value in (mine, policy) if value is not None), default)
    return min(max(-1, int(limit)), LENGTH_MAX)


def _max_age(arguments: Mapping[str, Any], definition: Definition) -> int:
    ages = [age_ms(text) for text in (arguments.get("x-max-age"), definition.get("max-age")) if text is not None]
    return min((age for age in ages if age is not None), default=-1)


def _segment_bytes(arguments: Mapping[str, Any], definition: Definition) -> int:
    # As in RabbitMQ, here the policy comes first.
    asked = definition.get("stream-max-segment-size-bytes", arguments.get(SEGMENT_BYTES, STREAM_SEGMENT_BYTES))
    return max(1, min(int(asked), STREAM_SEGMENT_BYTES_MAX))


def _unarchived_bytes(arguments: Mapping[str, Any], definition: Definition) -> int:
    asked = _least(UNARCHIVED_BYTES.removeprefix("x-"), arguments, definition, LENGTH_MAX)
    return STREAM_UNARCHIVED_BYTES_MAX if asked < 0 else asked


def _replicate(arguments: Mapping[str, Any], definition: Definition) -> str | None:
    for values, key in (
        (arguments, "x-replicate"),
        (arguments, "qpid.replicate"),
        (definition, "replicate"),
        (definition, "x-replicate"),
    ):
        if key in values:
            value: str = values[key]
            return value
    return None
