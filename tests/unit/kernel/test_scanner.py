"""Bytes into runs and frames: whatever the reads were, and in RabbitMQ's words when they are wrong."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest

from pandomq.kernel import constants, faults
from tests.unit.kernel.frames import (
    ack,
    frame,
    header_payload,
    nack,
    properties,
    publish,
    publish_method,
    reject,
)

FLOW = frame(1, 1, struct.pack(">HHB", 20, 20, 1))
HEARTBEAT = frame(8, 0, b"")


def flat(kernel: ModuleType, outputs: list[Any]) -> list[Any]:
    """Outputs as plain values."""
    values: list[Any] = []
    for output in outputs:
        if isinstance(output, kernel.PublishRun):
            assert len(output) > 0
            values += [(channel, m.routing, m.header, m.body, m.body_size, flags) for channel, m, flags in output]
        elif isinstance(output, kernel.DeliveryRun):
            assert len(output) > 0
            values += [(*item[:4], item[4].routing, item[4].header, item[4].body) for item in output]
        elif isinstance(output, faults.Content):
            message = output.message
            values.append((*output[:2], message.routing, message.header, message.body))
        elif isinstance(output, kernel.SettleRun):
            assert len(output) > 0
            values += list(output)
        else:
            values.append(output)
    return values


def scan(kernel: ModuleType, *reads: bytes, frame_max: int = 4096, body_size_max: int = 1 << 20) -> list[Any]:
    scanner = kernel.Scanner(frame_max, body_size_max)
    return flat(kernel, [output for data in reads for output in scanner.feed(data)])


CONVERSATION = b"".join(
    (
        publish(b"a", b"one"),
        publish(b"a", b"two"),
        publish(b"b", b"", properties(priority=2), channel=2, exchange=b"x", bits=1),
        HEARTBEAT,
        publish(b"c", b"long" * 30, chunk=7),
        ack(7),
        nack(8, True, True, channel=9),
        FLOW,
        reject(9, True),
        publish(b"a", b"three", bits=3),
    )
)


def test_a_conversation(kernel: ModuleType) -> None:
    def message(channel: int, exchange: bytes, key: bytes, body: bytes, flags: int, props: bytes = b"\0\0") -> Any:
        routing = bytes((len(exchange),)) + exchange + bytes((len(key),)) + key
        return channel, routing, header_payload(len(body), props), body, len(body), flags

    assert scan(kernel, CONVERSATION) == [
        message(1, b"", b"a", b"one", 0),
        message(1, b"", b"a", b"two", 0),
        message(2, b"x", b"b", b"", 1, properties(priority=2)),
        (8, 0, b""),
        message(1, b"", b"c", b"long" * 30, 0),
        (1, 80, 7, False, False),
        (9, 120, 8, True, True),
        (1, 1, FLOW[7:-1]),
        (1, 90, 9, False, True),
        message(1, b"", b"a", b"three", 3),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 13, 31, 64])
def test_the_division_of_bytes_into_reads_does_not_matter(kernel: ModuleType, size: int) -> None:
    reads = [CONVERSATION[at : at + size] for at in range(0, len(CONVERSATION), size)]
    assert scan(kernel, *reads) == scan(kernel, CONVERSATION)


@pytest.mark.parametrize("cut", range(0, len(CONVERSATION), 3))
def test_two_reads_are_as_good_as_one(kernel: ModuleType, cut: int) -> None:
    assert scan(kernel, CONVERSATION[:cut], CONVERSATION[cut:]) == scan(kernel, CONVERSATION)


def test_any_buffer_can_be_read(kernel: ModuleType) -> None:
    for data in (bytearray(CONVERSATION), memoryview(CONVERSATION), memoryview(bytearray(CONVERSATION))):
        assert flat(kernel, kernel.Scanner(4096, 4096).feed(data)) == scan(kernel, CONVERSATION)


def test_contents_of_several_channels_interleave(kernel: ModuleType) -> None:
    one = [publish_method(b"a"), header_payload(4), b"on", b"e!"]
    two = [publish_method(b"b"), header_payload(3), b"two"]
    data = b"".join(
        (
            frame(1, 1, one[0]),
            frame(1, 2, two[0]),
            frame(2, 2, two[1]),
            frame(2, 1, one[1]),
            frame(3, 1, one[2]),
            HEARTBEAT,
            frame(3, 2, two[2]),
            frame(3, 1, one[3]),
        )
    )
    found = scan(kernel, data)
    assert [(row[0], row[3]) for row in found[1:]] == [(2, b"two"), (1, b"one!")]
    assert found[0] == (8, 0, b"")


def test_runs_are_as_long_as_can_be(kernel: ModuleType) -> None:
    outputs = kernel.Scanner(4096, 4096).feed(CONVERSATION)
    assert [type(output).__name__ for output in outputs] == [
        "PublishRun", "Frame", "PublishRun", "SettleRun", "Frame", "SettleRun", "PublishRun",
    ]  # fmt: skip
    assert len(outputs[0]) == 3
    with pytest.raises(IndexError):
        outputs[0][3]
    assert outputs[0][-1][0] == 2


def test_equal_names_and_headers_are_kept_once(kernel: ModuleType) -> None:
    (run,) = kernel.Scanner(4096, 4096).feed(publish(b"key", b"one") + publish(b"key", b"two"))
    first, second = run[0][1], run[1][1]
    assert first.routing is second.routing
    assert first.header is second.header
    assert first.body != second.body


def test_an_idle_scanner_keeps_nothing(kernel: ModuleType) -> None:
    scanner = kernel.Scanner(4096, 4096)
    scanner.feed(CONVERSATION)
    assert scanner.buffered_bytes == 0
    scanner.feed(CONVERSATION[:10])
    assert scanner.buffered_bytes == 10
    data = frame(1, 1, publish_method(b"k")) + frame(2, 1, header_payload(100)) + frame(3, 1, b"x" * 40)
    scanner = kernel.Scanner(4096, 4096)
    scanner.feed(data + b"\3\0\1")
    assert scanner.buffered_bytes == len(b"\0\1k") + len(header_payload(100)) + 40 + 3
    scanner.feed(frame(3, 1, b"x" * 60)[3:])
    assert scanner.buffered_bytes == 0


def test_a_body_beyond_the_limit_is_skipped_and_reported(kernel: ModuleType) -> None:
    start = frame(1, 1, publish_method(b"k")) + frame(2, 1, header_payload(5000))
    scanner = kernel.Scanner(4096, 100)
    (run,) = scanner.feed(start)
    number, message, flags = run[0]
    assert (number, flags, message.body, message.body_size) == (1, constants.OVERSIZED, b"", 5000)
    assert scanner.feed(frame(3, 1, b"x" * 3000)) == []
    assert scanner.buffered_bytes < 100
    rest = scanner.feed(frame(3, 1, b"x" * 2000) + publish(b"k", b"next"))
    assert flat(kernel, rest)[0][3] == b"next"


def test_the_rest_of_a_body_beyond_the_limit_need_not_come(kernel: ModuleType) -> None:
    """A client that is informed in the middle agrees to the close with its next frame."""
    start = frame(1, 1, publish_method(b"k")) + frame(2, 1, header_payload(5000)) + frame(3, 1, b"x" * 3000)
    scanner = kernel.Scanner(4096, 100)
    scanner.feed(start)
    (found,) = scanner.feed(frame(1, 1, b"\x00\x14\x00\x29"))
    assert found == faults.Frame(1, 1, b"\x00\x14\x00\x29")
    assert flat(kernel, scanner.feed(publish(b"k", b"next")))[0][3] == b"next"


def test_large_bodies_in_small_frames(kernel: ModuleType) -> None:
    body = bytes(range(256)) * 12_000
    (found,) = scan(kernel, publish(b"k", body, chunk=4088), body_size_max=1 << 30)
    assert found[3] == body


def test_empty_body_frames_are_harmless(kernel: ModuleType) -> None:
    data = frame(1, 1, publish_method(b"k")) + frame(2, 1, header_payload(2))
    data += frame(3, 1, b"") + frame(3, 1, b"hi") + FLOW
    assert [row[3] for row in scan(kernel, data)[:1]] == [b"hi"]


def test_without_a_limit_frames_may_be_large(kernel: ModuleType) -> None:
    (found,) = scan(kernel, publish(b"k", b"x" * 100_000), frame_max=0)
    assert len(found[3]) == 100_000


METHOD, HEADER = frame(1, 1, publish_method(b"k")), frame(2, 1, header_payload(5))
FAULTS = {
    "bad end": (
        METHOD[:-1] + b"\xcd",
        501,
        "FRAME_ERROR - type 1, all octets = <<0,60,0,40,0,0,0,1,107,0>>: {invalid_frame_end_marker,205}",
        0,
        0,
    ),
    "unknown type": (frame(7, 1, b"\0"), 501, "FRAME_ERROR - type 7, all octets = <<0>>: unknown_frame", 0, 0),
    "too large": (
        struct.pack(">BHI", 3, 1, 4097),
        501,
        "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,4097,4088}",
        0,
        0,
    ),
    "method without ids": (frame(1, 1, b"\0\x3c"), 501, "type 1, all octets = <<0,60>>: unknown_frame", 0, 0),
    "header first": (HEADER, 505, "expected method frame, got non method frame instead", 0, 0),
    "body first": (frame(3, 1, b"x"), 505, "expected method frame, got non method frame instead", 0, 0),
    "method for header": (METHOD + FLOW, 505, "expected content header for class 60, got non content", 60, 40),
    "body for header": (
        METHOD + frame(3, 1, b"x"),
        505,
        "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        60,
        40,
    ),
    "method for body": (
        METHOD + HEADER + FLOW,
        505,
        "UNEXPECTED_FRAME - expected content body, got non content body frame instead",
        60,
        40,
    ),
    "header for body": (METHOD + HEADER + HEADER, 505, "expected content body, got non content body", 60, 40),
    "another class": (
        METHOD + frame(2, 1, struct.pack(">HHQH", 50, 0, 5, 0)),
        505,
        "expected content header for class 60, got one for class 50 instead",
        60,
        40,
    ),
    "a weight": (METHOD + frame(2, 1, struct.pack(">HHQH", 60, 1, 5, 0)), 505, "expected content header", 60, 40),
    "short header": (METHOD + frame(2, 1, b"\0\x3c\0\0"), 501, "type 2, all octets = <<0,60,0,0>>: unk", 0, 0),
    "body too long": (METHOD + HEADER + frame(3, 1, b"x" * 6), 501, "content body of 6 octets", 60, 40),
    "publish cut short": (
        frame(1, 1, struct.pack(">HHHB", 60, 40, 0, 0)),
        501,
        "FRAME_ERROR - cannot decode <<0,0,0>>",
        60,
        40,
    ),
    "publish too long": (frame(1, 1, publish_method(b"k") + b"z"), 501, "FRAME_ERROR - cannot decode <<0,0", 60, 40),
    "ack cut short": (frame(1, 1, struct.pack(">HHQ", 60, 80, 1)), 501, "cannot decode <<0,0,0,0,0,0,0,1>>", 60, 80),
    "publish on 0": (
        frame(1, 0, publish_method(b"k")),
        504,
        "CHANNEL_ERROR - unexpected method in connection state running",
        60,
        40,
    ),
    "nack on 0": (nack(1, False, False, channel=0), 504, "unexpected method in connection state running", 60, 120),
    "header on 0": (frame(2, 0, header_payload(5)), 505, "type 2, all octets = <<0,60,0,0", 0, 0),
    "body on 0": (frame(3, 0, b"x"), 505, 'UNEXPECTED_FRAME - type 3, all octets = <<"x">>', 0, 0),
    "heartbeat on 1": (frame(8, 1, b""), 505, "UNEXPECTED_FRAME - type 8, all octets = <<>>", 0, 0),
    "heartbeat with payload": (frame(8, 0, b"abc"), 501, 'type 8, all octets = <<"abc">>: unknown_frame', 0, 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_have_the_codes_and_texts_of_rabbitmq(kernel: ModuleType, name: str) -> None:
    data, code, text, class_id, method_id = FAULTS[name]
    scanner = kernel.Scanner(4096, 1 << 20)
    first, fault = scanner.feed(FLOW + data + FLOW)
    assert first == (1, 1, FLOW[7:-1])
    assert isinstance(fault, faults.ScanFault)
    assert (fault.reply_code, fault.class_id, fault.method_id) == (code, class_id, method_id)
    assert text in fault.reply_text
    assert len(fault.reply_text.encode()) <= 255
    assert scanner.feed(FLOW) == []
    assert scanner.buffered_bytes == 0


@pytest.mark.parametrize("name", FAULTS)
def test_faults_do_not_depend_on_reads_either(kernel: ModuleType, name: str) -> None:
    data = FAULTS[name][0]
    bytewise = scan(kernel, *(data[at : at + 1] for at in range(len(data))))
    assert bytewise == scan(kernel, data)


def test_eight_octets_too_many_are_forgiven(kernel: ModuleType) -> None:
    (found,) = scan(kernel, publish(b"k", b"x" * 4096))
    assert len(found[3]) == 4096
