"""The parser of content headers, compared with the vocabulary's own decoder and tested with damaged bytes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from pandomq.errors import ConnectionFault
from pandomq.kernel import constants
from pandomq.limits import FIELD_TABLE_DEPTH_MAX
from pandomq.properties import Properties, decode_header, encode_header
from tests.unit.kernel.frames import header_payload, headers, properties

SHORT = st.none() | st.text(max_size=20)
VALUES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=9) | st.binary(max_size=9) | st.none()
NESTED = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)
NAMES = st.sampled_from(["CC", "BCC", "x-delay", "k", "x-producer", "x-sequence"])
TABLES = st.dictionaries(NAMES | st.text(max_size=5), NESTED, max_size=4)
ANY_PROPERTIES = st.builds(
    Properties,
    content_type=SHORT,
    content_encoding=SHORT,
    headers=st.none() | TABLES,
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    correlation_id=SHORT,
    reply_to=SHORT | st.just("amq.rabbitmq.reply-to.x"),
    expiration=st.none() | st.integers(0, 2**60).map(str) | st.text(max_size=5),
    message_id=SHORT,
    timestamp=st.none() | st.integers(0, 2**63 - 1),
    type=SHORT,
    user_id=SHORT,
    app_id=SHORT,
    cluster_id=SHORT,
)


def traits(message: Any) -> tuple[Any, ...]:
    return message.persistent, message.priority, message.expiration_ms, message.special


@hypothesis.given(props=ANY_PROPERTIES)
def test_traits_are_those_of_the_decoded_properties(plain: ModuleType, fast: ModuleType, props: Properties) -> None:
    digits = props.expiration is not None and props.expiration.isascii() and props.expiration.isdigit()
    expiration_ms = int(props.expiration) if digits and props.expiration is not None else -1
    if expiration_ms > 2**53:
        expiration_ms = -1
    names = props.headers or {}
    special = (
        constants.SPECIAL_USER_ID * (props.user_id is not None)
        | constants.SPECIAL_COPIES * ("CC" in names or "BCC" in names)
        | constants.SPECIAL_REPLY_TO * (props.reply_to or "").startswith("amq.rabbitmq.reply-to")
        | constants.SPECIAL_EXPIRATION * (props.expiration is not None and expiration_ms < 0)
        | constants.SPECIAL_DELAY * ("x-delay" in names)
        | constants.SPECIAL_PRODUCER * ("x-producer" in names and "x-sequence" in names)
    )
    expected = (props.delivery_mode == 2, props.priority or 0, expiration_ms, special)
    for kernel in (plain, fast):
        assert traits(kernel.Message(b"\0\0", encode_header(3, props), b"abc")) == expected


@hypothesis.given(props=ANY_PROPERTIES, cut=st.integers(0, 200), flip=st.integers(0, 199), bit=st.integers(0, 7))
def test_broken_headers_are_read_alike_and_never_raise(
    plain: ModuleType, fast: ModuleType, props: Properties, cut: int, flip: int, bit: int
) -> None:
    header = bytearray(encode_header(0, props))
    header[flip % len(header)] ^= 1 << bit
    broken = bytes(header[: len(header) - cut if cut < len(header) else 0] if cut % 2 else header)
    one, other = (kernel.Message(b"\0\0", broken, b"") for kernel in (plain, fast))
    assert traits(one) == traits(other)
    for name in (b"CC", b"k", b"", b"x-delay"):
        assert one.find_header(name) == other.find_header(name)


@hypothesis.given(props=ANY_PROPERTIES)
def test_a_header_cut_short_is_malformed(plain: ModuleType, fast: ModuleType, props: Properties) -> None:
    whole = encode_header(0, props)
    for kernel in (plain, fast):
        for end in range(len(whole)):
            assert traits(kernel.Message(b"\0\0", whole[:end], b"")) == (False, 0, -1, constants.SPECIAL_MALFORMED)


@hypothesis.given(table=TABLES, at=st.integers(0, 500), octet=st.integers(0, 255))
def test_headers_are_malformed_where_a_client_could_not_read_them(
    plain: ModuleType, fast: ModuleType, table: dict[str, Any], at: int, octet: int
) -> None:
    """At any depth: what one client garbled must not reach another."""
    header = bytearray(encode_header(0, Properties(headers=table)))
    begin = len(header_payload(0))
    header[begin + at % (len(header) - begin)] = octet
    try:
        decode_header(bytes(header))
        readable = True
    except ConnectionFault:
        readable = False
    for kernel in (plain, fast):
        message = kernel.Message(b"\0\0", bytes(header), b"")
        assert (message.special & constants.SPECIAL_MALFORMED == 0) is readable


@pytest.mark.parametrize("nest", [lambda inner: {"": inner}, lambda inner: [inner]])
def test_headers_nested_too_deep_are_malformed(kernel: ModuleType, nest: Callable[[Any], Any]) -> None:
    value: Any = {}
    for _ in range(FIELD_TABLE_DEPTH_MAX - 2):
        value = nest(value)
    deepest = encode_header(0, Properties(headers={"k": value}))
    assert kernel.Message(b"\0\0", deepest, b"").special == 0
    too_deep = encode_header(0, Properties(headers={"k": nest(value)}))
    assert kernel.Message(b"\0\0", too_deep, b"").special == constants.SPECIAL_MALFORMED


def test_octets_after_the_properties_are_malformed(kernel: ModuleType) -> None:
    message = kernel.Message(b"\0\0", header_payload(0, properties(priority=4) + b"x"), b"")
    assert traits(message) == (False, 0, -1, constants.SPECIAL_MALFORMED)


@pytest.mark.parametrize("flags", [b"\0\1", b"\0\2"])
def test_flags_without_a_property_are_malformed(kernel: ModuleType, flags: bytes) -> None:
    assert kernel.Message(b"\0\0", header_payload(0, flags), b"").special == constants.SPECIAL_MALFORMED


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        (b"0", 0),
        (b"0060000", 60000),
        (b"134217728000", 2**27 * 1000),
        (b"9007199254740992", 2**53),
        (b"9007199254740993", -1),
        (b"9" * 255, -1),
        (b"0" * 254 + b"7", 7),
        (b"", -1),
        (b"+5", -1),
        (b"-1", -1),
        (b" 5", -1),
        (b"5 ", -1),
        (b"\xd9\xa1", -1),
    ],
)
def test_an_expiration_is_a_number_in_plain_digits(kernel: ModuleType, text: bytes, expected_ms: int) -> None:
    message = kernel.Message(b"\0\0", header_payload(0, properties(expiration=text)), b"")
    assert message.expiration_ms == expected_ms
    assert message.special == (constants.SPECIAL_EXPIRATION if expected_ms < 0 else 0)


def test_a_field_is_found_with_its_type(kernel: ModuleType) -> None:
    message = kernel.Message(b"\0\0", header_payload(0, properties(table=headers(a=b"1", key=b"xyz", b=b""))), b"")
    assert message.find_header(b"key") == b"S\0\0\0\3xyz"
    assert message.find_header(b"b") == b"S\0\0\0\0"
    assert message.find_header(b"ke") is None
    assert message.find_header(b"nope") is None


def test_names_survive_whatever_their_bytes(kernel: ModuleType) -> None:
    routing = b"\3\xff\xfe." + b"\2\xc3\xa9"
    message = kernel.Message(routing, header_payload(0), b"")
    assert kernel.routing_of(message.exchange, message.routing_key) == routing
    assert message.routing_key == "é"


@pytest.mark.parametrize("names", [("x" * 256, ""), ("", "é" * 128)])
def test_names_beyond_a_short_string_are_refused(kernel: ModuleType, names: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="255"):
        kernel.routing_of(*names)
