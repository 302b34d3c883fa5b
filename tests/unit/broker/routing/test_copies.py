"""CC and BCC."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pandomq import kernel
from pandomq.broker.publishing.copies import routing_keys_of, without_bcc
from pandomq.errors import ChannelFault
from pandomq.fieldtable import Int32, OctetString, Timestamp
from pandomq.properties import Properties, decode_header, encode_header


def message(headers: dict[str, Any] | None, **others: Any) -> kernel.Message:
    header = encode_header(4, Properties(headers=headers, **others))
    return kernel.Message(kernel.routing_of("x", "k"), header, b"body")


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ({}, ["k"]),
        ({"CC": []}, ["k"]),
        ({"CC": ["a", "b"], "BCC": ["c"]}, ["k", "a", "b", "c"]),
        ({"BCC": ["c", "k"], "CC": ["a", "c", "a"]}, ["k", "a", "c"]),
        ({"CC": ["a", Int32(5), b"b", None]}, ["k", "a"]),
        ({"CC": ["x" * 300, OctetString(b"\xff")]}, ["k", "x" * 300, "\udcff"]),
    ],
)
def test_further_keys(headers: dict[str, Any], keys: list[str]) -> None:
    assert routing_keys_of(message(headers), headers) == keys


@pytest.mark.parametrize(
    ("headers", "name", "type_name"),
    [
        ({"CC": "a"}, "CC", "longstr"),
        ({"BCC": Int32(5)}, "BCC", "signedint"),
        ({"CC": None}, "CC", "void"),
        ({"CC": {"a": 1}}, "CC", "table"),
        ({"CC": True}, "CC", "bool"),
        ({"CC": b"ab"}, "CC", "binary"),
        ({"CC": 2**40}, "CC", "long"),
        ({"CC": Decimal("1.5")}, "CC", "decimal"),
        ({"CC": Timestamp(5)}, "CC", "timestamp"),
        ({"BCC": "a", "CC": Int32(5)}, "CC", "signedint"),
    ],
)
def test_a_header_of_another_type_than_an_array_is_refused(headers: dict[str, Any], name: str, type_name: str) -> None:
    with pytest.raises(ChannelFault) as raised:
        routing_keys_of(message(headers), headers)
    assert raised.value.reply_code == 406
    assert raised.value.reply_text == (
        f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{name}",{type_name}}}'
    )


def test_consumers_see_cc_but_not_bcc() -> None:
    published = message({"CC": ["a"], "BCC": ["b"], "o": 1}, delivery_mode=2, message_id="m")
    seen = without_bcc(published)
    assert decode_header(seen.header) == (
        4,
        Properties(headers={"CC": ["a"], "o": 1}, delivery_mode=2, message_id="m"),
    )
    assert (seen.routing, seen.body, seen.persistent) == (published.routing, b"body", True)


def test_headers_stay_when_bcc_was_the_only_one() -> None:
    assert decode_header(without_bcc(message({"BCC": ["b"]})).header) == (4, Properties(headers={}))


def test_without_bcc_is_the_message_itself() -> None:
    published = message({"CC": ["a"]})
    assert without_bcc(published) is published
    bare = message(None)
    assert without_bcc(bare) is bare
