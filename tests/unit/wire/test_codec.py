"""Methods to frames and back, held against pika's own encoder."""

from __future__ import annotations

from typing import Any

import msgspec
import pika.spec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import encode_table
from pandomq.methods import METHODS, Method, WireType
from pandomq.properties import Properties, encode_header
from pandomq.wire.codec import HEARTBEAT, decode_method, encode_content, encode_frame, encode_method
from tests.unit.amqp_values import METHOD_INSTANCES, fault_of, instances

# Methods that pika does not know, or knows under another layout.
UNKNOWN_TO_PIKA = {"access.request", "access.request-ok", "basic.settle", "basic.settle-ok", "basic.held"}
NAMES_IN_PIKA = {
    "no_wait": "nowait",
    "global_": "global_qos",
    "failed_class_id": "class_id",
    "failed_method_id": "method_id",
}
KNOWN_TO_PIKA = [method for method in METHODS.values() if method.amqp_name not in UNKNOWN_TO_PIKA]


@given(METHOD_INSTANCES)
def test_decoding_undoes_encoding(method: Method) -> None:
    assert decode_method(encode_method(method)) == method


def test_all_methods_are_there() -> None:
    assert len(METHODS) == 66 + 3, "three are for brokers only"
    names = {method.amqp_name for method in METHODS.values()}
    assert {"connection.update-secret-ok", "exchange.unbind-ok", "basic.recover-async", "confirm.select"} <= names
    assert METHODS[40, 51] is methods.ExchangeUnbindOk
    with_content = {method.amqp_name for method in METHODS.values() if method.has_content}
    assert with_content == {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}


@pytest.mark.parametrize("method", KNOWN_TO_PIKA, ids=lambda method: method.amqp_name)
@settings(max_examples=15)
@given(data=st.data())
def test_pika_encodes_the_same(method: type[Method], data: st.DataObject) -> None:
    ours = data.draw(instances(method))
    arguments: dict[str, Any] = {}
    for field in method.layout:
        if field.name is None:
            continue
        if field.type is WireType.TABLE:
            # Pika chooses other types for the values of a table: only empty ones can be compared.
            ours = msgspec.structs.replace(ours, **{field.name: {}})
        value = getattr(ours, field.name)
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogateescape")
        arguments[NAMES_IN_PIKA.get(field.name, field.name)] = value
    theirs = pika.spec.methods[method.class_id << 16 | method.method_id](**arguments)
    assert encode_method(ours)[4:] == b"".join(theirs.encode())
    assert theirs.synchronous == method.synchronous


def test_bytes_of_a_frame() -> None:
    frame = encode_frame(3, methods.QueueDeclare("q", durable=True, no_wait=True, arguments={"k": True}))
    payload = b"\x00\x32\x00\x0a" + b"\x00\x00" + b"\x01q" + b"\x12" + encode_table({"k": True})
    assert frame == b"\x01\x00\x03" + len(payload).to_bytes(4, "big") + payload + b"\xce"
    assert HEARTBEAT == b"\x08\x00\x00" + b"\x00\x00\x00\x00" + b"\xce"


def test_reserved_fields_may_hold_anything() -> None:
    declare = b"\x00\x32\x00\x0a" + b"\xab\xcd" + b"\x01q" + b"\xe0" + b"\x00\x00\x00\x00"
    assert decode_method(declare) == methods.QueueDeclare("q")
    opened = b"\x00\x0a\x00\x28" + b"\x01/" + b"\x07ignored" + b"\xff"
    assert decode_method(opened) == methods.ConnectionOpen("/")


@pytest.mark.parametrize(
    ("payload", "code", "text", "ids"),
    [
        (b"", 501, "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame", (0, 0)),
        (b"\x00\x32\x00", 501, "FRAME_ERROR - type 1, all octets = <<0,50,0>>: unknown_frame", (0, 0)),
        (b"\x00\x32\x00\x63", 540, "NOT_IMPLEMENTED - unknown method 50.99", (50, 99)),
        (b"\x00\x32\x00\x0a\x00\x00\x01q", 501, "FRAME_ERROR - cannot decode <<0,0,1,113>>", (50, 10)),
        (b"\x00\x5a\x00\x0a\x01", 501, "FRAME_ERROR - cannot decode <<1>>", (90, 10)),
        (b"\x00\x32\x00\x1e\x00\x00\x05q\x00", 501, "FRAME_ERROR - cannot decode <<0,0,5,113,0>>", (50, 30)),
        (b"\x00\x32\x00\x1e\x00\x00\x01\xff\x00", 501, "FRAME_ERROR - Malformed UTF-8 in shortstr", (0, 0)),
        (
            b"\x00\x32\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x05",
            501,
            "FRAME_ERROR - cannot decode <<0,0,0,0,0,0,0,5>>",
            (50, 10),
        ),
        (
            b"\x00\x32\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x03\x01aZ",
            502,
            "SYNTAX_ERROR - unknown field type 90",
            (50, 10),
        ),
    ],
)
def test_malformed_methods_are_faults(payload: bytes, code: int, text: str, ids: tuple[int, int]) -> None:
    with pytest.raises(ConnectionFault) as caught:
        decode_method(payload)
    fault = caught.value
    assert (fault.reply_code, fault.reply_text, (fault.class_id, fault.method_id)) == (code, text, ids)


def test_names_of_contents_may_be_any_octets() -> None:
    publish = b"\x00\x3c\x00\x28\x00\x00\x00\x02\xff\xfe\x00"
    method = decode_method(publish)
    assert method == methods.BasicPublish("", "\udcff\udcfe")
    assert encode_method(method) == publish


@given(METHOD_INSTANCES, st.data())
def test_damaged_methods_decode_or_are_faults(method: Method, data: st.DataObject) -> None:
    damaged = bytearray(encode_method(method) + data.draw(st.binary(max_size=2)))
    for _ in range(data.draw(st.integers(0, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(damaged)[: data.draw(st.integers(0, len(damaged)))]
    fault = fault_of(lambda: decode_method(payload))
    assert fault is None or fault.reply_code in (501, 502, 540)
    assert fault is None or len(fault.reply_text.encode()) <= 255


@pytest.mark.parametrize("size", [0, 1, 4087, 4088, 4089, 3 * 4088, 10_000])
def test_contents_are_split_at_frame_max(size: int) -> None:
    body = bytes(position % 251 for position in range(size))
    header = encode_header(size, Properties(priority=1))
    deliver = methods.BasicDeliver("c", 1, False, "x", "k")
    frames = list(split_frames(encode_content(5, deliver, header, body, 4096)))
    assert frames[0] == (1, 5, encode_method(deliver))
    assert frames[1] == (2, 5, header)
    assert all((kind, channel) == (3, 5) and 0 < len(payload) <= 4088 for kind, channel, payload in frames[2:])
    assert b"".join(payload for _, _, payload in frames[2:]) == body
    assert len(frames) == 2 + -(-size // 4088)


def split_frames(octets: bytes) -> Any:
    while octets:
        size = int.from_bytes(octets[3:7], "big")
        assert octets[7 + size] == 0xCE
        yield octets[0], int.from_bytes(octets[1:3], "big"), octets[7 : 7 + size]
        octets = octets[8 + size :]
