"""The arguments of queue.declare that only streams accept, with RabbitMQ's error texts."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pandomq.errors import ChannelFault, precondition_failed
from pandomq.limits import STREAM_SEGMENT_BYTES_MAX

SEGMENT_BYTES: Final = "x-stream-max-segment-size-bytes"
FILTER_SIZE: Final = "x-stream-filter-size-bytes"
ARCHIVE: Final = "x-retain-until-archived"
UNARCHIVED_BYTES: Final = "x-max-unarchived-bytes"
COMPRESSION: Final = "x-stream-compression"
ALLOWED: Final = frozenset(
    (
        "x-queue-type",
        "x-max-length-bytes",
        "x-max-age",
        SEGMENT_BYTES,
        FILTER_SIZE,
        ARCHIVE,
        UNARCHIVED_BYTES,
        COMPRESSION,
        "x-initial-cluster-size",
        "x-queue-leader-locator",
        "x-replicate",
        "qpid.replicate",
    )
)
ONLY: Final = (
    "x-max-age",
    SEGMENT_BYTES,
    FILTER_SIZE,
    COMPRESSION,
    ARCHIVE,
    UNARCHIVED_BYTES,
    "x-initial-cluster-size",
)
"""Arguments that only streams have."""

_FILTER_SIZE_MIN: Final = 16
_FILTER_SIZE_MAX: Final = 255


def refusal(arguments: Mapping[str, Any], resource: str, known: Iterable[str]) -> ChannelFault | None:
    """For arguments whose types are right; `known` are those that some queue understands."""
    for name in known:
        if name in arguments and name not in ALLOWED:
            return precondition_failed(f"invalid arg '{name}' for {resource} of queue type rabbit_stream_queue")
    if arguments.get(SEGMENT_BYTES, 0) > STREAM_SEGMENT_BYTES_MAX:
        return precondition_failed(f"Exceeded max value for {SEGMENT_BYTES}")
    # It would be the size of a filter for a whole chunk; ours check each message, and need none.
    if not _FILTER_SIZE_MIN <= arguments.get(FILTER_SIZE, _FILTER_SIZE_MIN) <= _FILTER_SIZE_MAX:
        return precondition_failed(f"Invalid value for  {FILTER_SIZE}")
    return None
