"""Field values as RabbitMQ prints them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pandomq.broker.field_text import plain, term, type_name
from pandomq.broker.queues.equivalence import check_arguments
from pandomq.errors import ChannelFault
from pandomq.fieldtable import Float32, Int8, Int16, Int32, Int64L, OctetString, Timestamp, UInt8, UInt16, UInt32


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (True, "bool", "true"),
        (False, "bool", "false"),
        (Int8(-1), "byte", "-1"),
        (UInt8(1), "unsignedbyte", "1"),
        (Int16(1), "short", "1"),
        (UInt16(1), "unsignedshort", "1"),
        (Int32(1), "signedint", "1"),
        (UInt32(1), "unsignedint", "1"),
        (1, "long", "1"),
        (Int64L(1), "long", "1"),
        (Timestamp(1), "timestamp", "1"),
        (Float32(1.5), "float", "1.5"),
        (0.1, "double", "0.1"),
        (Decimal("-1.25"), "decimal", "{2,-125}"),
        (Decimal("3"), "decimal", "{0,3}"),
        ("", "longstr", "<<>>"),
        ("a b", "longstr", '<<"a b">>'),
        ('a"\\\n', "longstr", '<<"a\\"\\\\\\n">>'),
        ("é", "longstr", '<<"é"/utf8>>'),
        (OctetString(b"\xff\x00"), "longstr", "<<255,0>>"),
        (b"ab", "binary", '<<"ab">>'),
        (b"\x00", "binary", "<<0>>"),
        ([], "array", "[]"),
        ([Int32(1), "a"], "array", '[{signedint,1},{longstr,<<"a">>}]'),
        ({}, "table", "[]"),
        ({"a": Int32(1), "b": [True]}, "table", '[{<<"a">>,signedint,1},{<<"b">>,array,[{bool,true}]}]'),
        (None, "void", "undefined"),
    ],
)
def test_type_and_term(value: Any, name: str, text: str) -> None:
    assert type_name(value) == name
    assert term(value) == text


def test_plain_strings_are_not_quoted() -> None:
    assert [plain(value) for value in ("a", b"b", 5, True, ["a"])] == ["a", "b", "5", "true", '[{longstr,<<"a">>}]']


def test_numbers_may_differ_in_width_only() -> None:
    check_arguments(("n",), "queue 'q' in vhost '/'", {"n": Int8(5)}, {"n": 5})
    check_arguments(("n",), "queue 'q' in vhost '/'", {"n": Float32(1.5)}, {"n": 1.5})
    for received, current in ((5, 6), (5, 5.0), (1, True), (5, Timestamp(5)), ("a", b"a")):
        with pytest.raises(ChannelFault):
            check_arguments(("n",), "queue 'q' in vhost '/'", {"n": received}, {"n": current})
