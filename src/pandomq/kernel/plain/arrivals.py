"""Methods with content that another broker sends: basic.deliver, basic.return, basic.get-ok.

A basic.deliver may have more fields after its arguments: sequence and term of the message in the root's queue, so that
it can be settled at another root, too. A basic.get-ok may have them, too, after the queue's id; the caller reads those.
"""

import struct
from typing import Final, NamedTuple

from pandomq.kernel.constants import BASIC, DELIVER, GET_OK, RETURN

ARRIVAL_STARTS: Final = {struct.pack(">HH", BASIC, method_id): method_id for method_id in (DELIVER, RETURN, GET_OK)}
DELIVERY: Final = struct.Struct(">QB")
METHOD_START_BYTES: Final = 4
MESSAGE_COUNT_BYTES: Final = 4
REPLY_CODE_BYTES: Final = 2
PLACE: Final = struct.Struct(">QQ")
"""Sequence and term."""
GOT_PLACE_BYTES: Final = 24


class Arrival(NamedTuple):
    """The method of a content. For basic.return only payload and routing have a meaning."""

    method_id: int
    payload: bytes
    routing: bytes
    consumer_tag: bytes = b""
    delivery_tag: int = 0
    redelivered: bool = False
    place: tuple[int, int] = (0, 0)
    """Sequence and term in the root's queue, if the delivery has them."""

    @property
    def size(self) -> int:
        """Bytes kept of it until its content is complete."""
        return len(self.payload) if self.method_id != DELIVER else len(self.consumer_tag)


def read_arrival(method_id: int, payload: bytes) -> Arrival | None:
    """None if it cannot be read."""
    if method_id == RETURN:
        start = _after_short_string(payload, METHOD_START_BYTES + REPLY_CODE_BYTES)
        return _arrival(method_id, payload, start, (0,))
    if method_id == GET_OK:
        start = METHOD_START_BYTES + DELIVERY.size
        return _arrival(method_id, payload, start, (MESSAGE_COUNT_BYTES, MESSAGE_COUNT_BYTES + GOT_PLACE_BYTES))
    tag_end = _after_short_string(payload, METHOD_START_BYTES)
    start = tag_end + DELIVERY.size
    arrival = _arrival(method_id, payload, start, (0, PLACE.size))
    if arrival is None:
        return None
    delivery_tag, bits = DELIVERY.unpack_from(payload, tag_end)
    end = start + len(arrival.routing)
    return arrival._replace(
        consumer_tag=payload[METHOD_START_BYTES + 1 : tag_end],
        delivery_tag=delivery_tag,
        redelivered=bool(bits & 1),
        place=(0, 0) if end == len(payload) else PLACE.unpack_from(payload, end),
    )


def _arrival(method_id: int, payload: bytes, start: int, rest: tuple[int, ...]) -> Arrival | None:
    """The routing begins at `start`; the possible numbers of octets after it are `rest`."""
    key = _after_short_string(payload, start)
    stop = _after_short_string(payload, key)
    if len(payload) - stop not in rest:
        return None
    return Arrival(method_id, payload, payload[start:stop])


def _after_short_string(payload: bytes, start: int) -> int:
    """Where the next argument begins; beyond the payload if this one does."""
    return start + 1 + payload[start] if start < len(payload) else len(payload) + 1
