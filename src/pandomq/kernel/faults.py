"""Outputs of a scanner other than runs: frames and contents that other code decodes, and the fault that ends a
connection.

Both twins build their faults here, in RabbitMQ's codes and words, so that the hot loops hold no text.
"""

from typing import TYPE_CHECKING, NamedTuple

from pandomq.errors import Fault, channel_error, frame_error, unexpected_frame
from pandomq.kernel.constants import BASIC, PUBLISH

if TYPE_CHECKING:
    from pandomq.kernel._fast import Message

OCTETS_SHOWN_MAX = 64
"""More of a bad frame would not fit a reply text anyway."""


class Frame(NamedTuple):
    """A complete frame that is no part of a content."""

    kind: int
    channel: int
    payload: bytes


class Content(NamedTuple):
    """A method with content that came from a broker: basic.return or basic.get-ok."""

    channel: int
    payload: bytes
    """The method's payload, as in a Frame."""
    message: "Message"


class ScanFault(NamedTuple):
    """The reason why the connection is not read any more."""

    reply_code: int
    reply_text: str
    class_id: int
    method_id: int


def _scan_fault(fault: Fault, class_id: int = 0, method_id: int = 0) -> ScanFault:
    return ScanFault(fault.reply_code, fault.reply_text, class_id, method_id)


def _octets(payload: bytes) -> str:
    # In the form in which Erlang prints a binary.
    shown = payload[:OCTETS_SHOWN_MAX]
    if shown and all(32 <= octet < 127 for octet in shown):
        return f'<<"{shown.decode()}">>'
    return f"<<{','.join(str(octet) for octet in shown)}>>"


def frame_too_large(kind: int, size: int, frame_max: int) -> ScanFault:
    return _scan_fault(frame_error(f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{frame_max - 8}}}"))


def bad_frame_end(kind: int, payload: bytes, octet: int) -> ScanFault:
    return _scan_fault(
        frame_error(f"type {kind}, all octets = {_octets(payload)}: {{invalid_frame_end_marker,{octet}}}")
    )


def unknown_frame(kind: int, payload: bytes) -> ScanFault:
    """An unknown type, or too few octets for its type."""
    return _scan_fault(frame_error(f"type {kind}, all octets = {_octets(payload)}: unknown_frame"))


def misplaced_frame(kind: int, payload: bytes) -> ScanFault:
    """A content frame on channel 0, or a heartbeat on another."""
    return _scan_fault(unexpected_frame(f"type {kind}, all octets = {_octets(payload)}"))


def undecodable_method(arguments: bytes, class_id: int, method_id: int) -> ScanFault:
    return _scan_fault(frame_error(f"cannot decode {_octets(arguments)}"), class_id, method_id)


def method_on_channel_0(class_id: int, method_id: int) -> ScanFault:
    return _scan_fault(channel_error("unexpected method in connection state running"), class_id, method_id)


def expected_method() -> ScanFault:
    return _scan_fault(unexpected_frame("expected method frame, got non method frame instead"))


def expected_header() -> ScanFault:
    text = "expected content header for class 60, got non content header frame instead"
    return _scan_fault(unexpected_frame(text), BASIC, PUBLISH)


def expected_class(class_id: int) -> ScanFault:
    text = f"expected content header for class 60, got one for class {class_id} instead"
    return _scan_fault(unexpected_frame(text), BASIC, PUBLISH)


def expected_body() -> ScanFault:
    text = "expected content body, got non content body frame instead"
    return _scan_fault(unexpected_frame(text), BASIC, PUBLISH)


def body_too_long(size: int, missing: int) -> ScanFault:
    return _scan_fault(frame_error(f"content body of {size} octets where {missing} are missing"), BASIC, PUBLISH)


def body_too_large(size: int, size_max: int) -> ScanFault:
    """For a broker's content: a broker knows the limit of its peer."""
    return _scan_fault(frame_error(f"content body of {size} octets, but at most {size_max} are taken"))
