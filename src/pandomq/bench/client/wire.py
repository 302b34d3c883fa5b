"""The part of AMQP 0-9-1 that a load generator writes and reads.

Every function returns bytes ready for the socket. Nothing here keeps state or is complete: it is independent of the
broker's own codec, so that a mistake in one is not hidden by the same mistake in the other.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
FRAME_OVERHEAD_BYTES = 8
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

Method = tuple[int, int]

CONNECTION_START: Method = (10, 10)
CONNECTION_TUNE: Method = (10, 30)
CONNECTION_OPEN_OK: Method = (10, 41)
CONNECTION_CLOSE: Method = (10, 50)
CONNECTION_CLOSE_OK: Method = (10, 51)
CONNECTION_BLOCKED: Method = (10, 60)
CONNECTION_UNBLOCKED: Method = (10, 61)
CHANNEL_OPEN_OK: Method = (20, 11)
CHANNEL_CLOSE: Method = (20, 40)
EXCHANGE_DECLARE_OK: Method = (40, 11)
EXCHANGE_DELETE_OK: Method = (40, 21)
QUEUE_DECLARE_OK: Method = (50, 11)
QUEUE_BIND_OK: Method = (50, 21)
QUEUE_DELETE_OK: Method = (50, 41)
BASIC_QOS_OK: Method = (60, 11)
BASIC_CONSUME_OK: Method = (60, 21)
BASIC_CANCEL: Method = (60, 30)
BASIC_RETURN: Method = (60, 50)
BASIC_DELIVER: Method = (60, 60)
BASIC_ACK: Method = (60, 80)
BASIC_NACK: Method = (60, 120)
CONFIRM_SELECT_OK: Method = (85, 11)

ArgumentValue = bool | int | float | str
Arguments = Mapping[str, ArgumentValue]

FRAME_HEAD = struct.Struct(">BHI")
METHOD_HEAD = struct.Struct(">BHIHH")
ACK_FRAME = struct.Struct(">BHIHHQBB")
ACK_PAYLOAD_BYTES = 13
ACK_FRAME_BYTES = ACK_FRAME.size


class BrokerRefused(Exception):
    """The broker closed the channel or the connection, or sent something that makes the measurement invalid."""


class MessageProperties(NamedTuple):
    """The basic properties a load may set; None leaves one out."""

    persistent: bool = False
    priority: int | None = None
    expiration_ms: int | None = None
    headers: Arguments | None = None

    def encode(self) -> bytes:
        """Property flags and values, in the form of a content header after the body size."""
        flags, values = 0x1000, struct.pack(">B", 2 if self.persistent else 1)
        if self.headers is not None:
            flags |= 0x2000
            values = table(self.headers) + values
        if self.priority is not None:
            flags |= 0x0800
            values += struct.pack(">B", self.priority)
        if self.expiration_ms is not None:
            flags |= 0x0100
            values += short_string(str(self.expiration_ms))
        return struct.pack(">H", flags) + values


def short_string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">B", len(data)) + data


def long_string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def field_value(value: ArgumentValue) -> bytes:
    # A bool is an int in Python, so it must be checked first.
    match value:
        case bool():
            return b"t" + struct.pack(">B", value)
        case int():
            small = -(2**31) <= value < 2**31
            return b"I" + struct.pack(">i", value) if small else b"l" + struct.pack(">q", value)
        case float():
            return b"d" + struct.pack(">d", value)
        case str():
            return b"S" + long_string(value.encode())


def table(fields: Arguments) -> bytes:
    return long_string(b"".join(short_string(name) + field_value(value) for name, value in fields.items()))


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return FRAME_HEAD.pack(kind, channel, len(payload)) + payload + bytes([FRAME_END])


def method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    return frame(FRAME_METHOD, channel, struct.pack(">HH", class_id, method_id) + arguments)


def start_ok(user: str, password: str) -> bytes:
    # Without these a broker closes the socket silently on a wrong password, and does not report a cancelled consumer.
    able = ("authentication_failure_close", "consumer_cancel_notify", "connection.blocked", "basic.nack")
    capabilities = table(dict.fromkeys(able, True))
    product = short_string("product") + field_value("pandomq bench")
    client = long_string(product + short_string("capabilities") + b"F" + capabilities)
    response = long_string(f"\0{user}\0{password}".encode())
    return method(0, 10, 11, client + short_string("PLAIN") + response + short_string("en_US"))


def tune_ok(channel_max: int, frame_bytes_max: int) -> bytes:
    # No heartbeats: a generator that is busy for a second must not count as lost.
    return method(0, 10, 31, struct.pack(">HIH", channel_max, frame_bytes_max, 0))


def connection_open(vhost: str) -> bytes:
    return method(0, 10, 40, short_string(vhost) + b"\0\0")


def connection_close() -> bytes:
    return method(0, 10, 50, struct.pack(">H", 200) + short_string("done") + struct.pack(">HH", 0, 0))


def channel_open(channel: int) -> bytes:
    return method(channel, 20, 10, b"\0")


def exchange_declare(channel: int, name: str, kind: str, arguments: Arguments) -> bytes:
    # Auto-delete is not used: an exchange without bindings has to last until the bindings are declared.
    return method(channel, 40, 10, b"\0\0" + short_string(name) + short_string(kind) + b"\0" + table(arguments))


def exchange_delete(channel: int, name: str) -> bytes:
    return method(channel, 40, 20, b"\0\0" + short_string(name) + b"\0")


def queue_declare(
    channel: int, name: str, arguments: Arguments, *, durable: bool = False, exclusive: bool = False
) -> bytes:
    bits = durable << 1 | exclusive << 2
    return method(channel, 50, 10, b"\0\0" + short_string(name) + bytes([bits]) + table(arguments))


def queue_bind(channel: int, queue: str, exchange: str, key: str, *, no_wait: bool = False) -> bytes:
    names = short_string(queue) + short_string(exchange) + short_string(key)
    return method(channel, 50, 20, b"\0\0" + names + bytes([no_wait]) + table({}))


def queue_delete(channel: int, name: str) -> bytes:
    return method(channel, 50, 40, b"\0\0" + short_string(name) + b"\0")


def basic_qos(channel: int, prefetch: int) -> bytes:
    return method(channel, 60, 10, struct.pack(">IHB", 0, prefetch, 0))


def basic_consume(
    channel: int, queue: str, tag: str, arguments: Arguments, *, auto_ack: bool, no_wait: bool = False
) -> bytes:
    bits = auto_ack << 1 | no_wait << 3
    return method(channel, 60, 20, b"\0\0" + short_string(queue) + short_string(tag) + bytes([bits]) + table(arguments))


def basic_ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    return ACK_FRAME.pack(FRAME_METHOD, channel, ACK_PAYLOAD_BYTES, 60, 80, tag, multiple, FRAME_END)


def confirm_select(channel: int) -> bytes:
    return method(channel, 85, 10, b"\0")


def publish(
    channel: int, exchange: str, key: str, properties: MessageProperties, body: bytes, frame_bytes_max: int
) -> bytes:
    """One whole publish: the method, the content header, and the body in as many frames as the tune asks for."""
    names = b"\0\0" + short_string(exchange) + short_string(key) + b"\0"
    header = struct.pack(">HHQ", 60, 0, len(body)) + properties.encode()
    piece_bytes = frame_bytes_max - FRAME_OVERHEAD_BYTES
    pieces = (body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes))
    return (
        method(channel, 60, 40, names)
        + frame(FRAME_HEADER, channel, header)
        + b"".join(frame(FRAME_BODY, channel, piece) for piece in pieces)
    )


def refusal(payload: bytes) -> str:
    """The reply code and text of a channel.close or connection.close payload, for people."""
    code, length = struct.unpack_from(">HB", payload, 4)
    return f"{code} {payload[7 : 7 + length].decode(errors='replace')}"
