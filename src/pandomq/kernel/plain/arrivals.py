"""Methods with content that another broker sends: basic.deliver, basic.return, basic.get-ok."""

import struct
from typing import Final, NamedTuple

from pandomq.kernel.constants import BASIC, DELIVER, GET_OK, RETURN

ARRIVAL_STARTS: Final = {struct.pack(">HH", BASIC, method_id): method_id for method_id in (DELIVER, RETURN, GET_OK)}
DELIVERY: Final = struct.Struct(">QB")
METHOD_START_BYTES: Final = 4
MESSAGE_COUNT_BYTES: Final = 4
REPLY_CODE_BYTES: Final = 2


class Arrival(NamedTuple):
    """The method of a content. Of basic.return only payload and routing mean something."""

    method_id: int
    payload: bytes
    routing: bytes
    consumer_tag: bytes = b""
    delivery_tag: int = 0
    redelivered: bool = False

    @property
    def size(self) -> int:
        """What is kept of it while its content comes."""
        return len(self.payload) if self.method_id != DELIVER else len(self.consumer_tag)


def read_arrival(method_id: int, payload: bytes) -> Arrival | None:
    """None if it cannot be read."""
    if method_id == RETURN:
        start = _after_short_string(payload, METHOD_START_BYTES + REPLY_CODE_BYTES)
        return _arrival(method_id, payload, start, len(payload))
    if method_id == GET_OK:
        return _with_tag(method_id, payload, METHOD_START_BYTES, len(payload) - MESSAGE_COUNT_BYTES, b"")
    start = _after_short_string(payload, METHOD_START_BYTES)
    return _with_tag(method_id, payload, start, len(payload), payload[METHOD_START_BYTES + 1 : start])


def _with_tag(method_id: int, payload: bytes, start: int, stop: int, consumer_tag: bytes) -> Arrival | None:
    arrival = _arrival(method_id, payload, start + DELIVERY.size, stop)
    if arrival is None:
        return None
    delivery_tag, bits = DELIVERY.unpack_from(payload, start)
    return arrival._replace(consumer_tag=consumer_tag, delivery_tag=delivery_tag, redelivered=bool(bits & 1))


def _arrival(method_id: int, payload: bytes, start: int, stop: int) -> Arrival | None:
    key = _after_short_string(payload, start)
    if start >= stop or key >= stop or _after_short_string(payload, key) != stop:
        return None
    return Arrival(method_id, payload, payload[start:stop])


def _after_short_string(payload: bytes, start: int) -> int:
    """Where the next argument begins; beyond the payload if this one does."""
    return start + 1 + payload[start] if start < len(payload) else len(payload) + 1
