"""The arguments of basic.consume for a stream, with RabbitMQ's error texts, and where the consumer begins to read.

Differences: `last` is the last message, not the last chunk; filters are exact; a time is that of a message.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pandomq.broker.streams.ages import INVALID, age_ms
from pandomq.errors import not_implemented, precondition_failed
from pandomq.fieldtable import Timestamp
from pandomq.limits import STREAM_OFFSET_MAX, STREAM_TIME_S_MAX

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.broker.channel import Channel
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.streams.stream import Stream

OFFSET: Final = "x-stream-offset"
FILTER: Final = "x-stream-filter"
MATCH_UNFILTERED: Final = "x-stream-match-unfiltered"
FILTERS_MAX: Final = 64
"""The limit of one consumer: each message is compared with all of them."""

_OTHERS: Final = ("x-priority", "x-consumer-timeout")
"""Arguments that consumers of other queues may have."""


def check_consume(channel: "Channel", queue: "Queue", *, no_ack: bool, arguments: Mapping[str, Any]) -> None:
    """Raises ChannelFault (406), ConnectionFault (540)."""
    for name in _OTHERS:
        if name in arguments:
            raise precondition_failed(f"invalid arg '{name}' for {queue.resource} of queue type rabbit_stream_queue")
    if not channel.prefetch_count:
        raise precondition_failed(f"consumer prefetch count is not set for stream {queue.resource}")
    if no_ack:
        raise not_implemented(f"automatic acknowledgement not supported by stream {queue.resource}")
    if channel.kernel.prefetch_max:
        raise not_implemented(f"{queue.resource} does not support global qos")
    wrong = _what_is_wrong(arguments.get(OFFSET, "next"))
    if wrong is not None:
        raise precondition_failed(f"invalid arg '{OFFSET}' for {queue.resource}: {wrong}")
    if len(filters_of(arguments)) > FILTERS_MAX:
        raise precondition_failed(f"invalid arg '{FILTER}' for {queue.resource}: more than {FILTERS_MAX} values")


def _what_is_wrong(offset: Any) -> str | None:
    if isinstance(offset, str):
        return None if offset in ("first", "last", "next") or age_ms(offset) is not None else INVALID
    if isinstance(offset, Timestamp):
        in_range = offset <= STREAM_TIME_S_MAX
        return None if in_range else f"a timestamp must be between 0 and {STREAM_TIME_S_MAX} seconds, not {offset:d}"
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= STREAM_OFFSET_MAX:
        return "invalid_offset_arg"
    return None


def filters_of(arguments: Mapping[str, Any]) -> list[bytes]:
    wanted = arguments.get(FILTER)
    values = wanted if isinstance(wanted, list) else [wanted]
    return [value.encode("utf-8", "surrogateescape") for value in values if isinstance(value, str)]


def begin_reading(
    stream: "Stream",
    consumer: "kernel.Consumer",
    arguments: Mapping[str, Any],
    full: "Sequence[kernel.Chunk]",
    now_ms: int,
) -> int | None:
    """For checked arguments; the chunks in `full` became so in this batch. Returns the first offset, or None if that is
    determined later."""
    filters = filters_of(arguments)
    unfiltered = bool(filters) and arguments.get(MATCH_UNFILTERED) is True
    offset = arguments.get(OFFSET, "next")
    time_us = time_of(offset, now_ms)
    if time_us is not None:
        channel, tag = consumer.channel.owner, consumer.tag.decode()

        def found(at: int) -> None:
            # The consumer may have been cancelled meanwhile.
            if channel.consumers.get(tag) is consumer:
                consumer.seek(at, filters, unfiltered)

        stream.find_time(time_us, found, full)
        return None
    first_offset = min([stream.first_offset, *(chunk.first_offset for chunk in full)])
    if offset == "first":
        offset = first_offset
    elif offset == "last":
        offset = max(first_offset, stream.committed_end - 1)
    elif offset == "next":
        offset = stream.committed_end
    consumer.seek(int(offset), filters, unfiltered)
    return int(offset)


def time_of(offset: Any, now_ms: int) -> int | None:
    """The time in microseconds, if the offset is a time."""
    if isinstance(offset, Timestamp):
        return int(offset) * 1_000_000
    age = age_ms(offset) if isinstance(offset, str) else None
    return None if age is None else max(0, now_ms - age) * 1000
