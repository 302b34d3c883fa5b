"""The headers exchange against a definition without an index, and RabbitMQ's texts for a wrong x-match."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker.exchanges.exchange import ExchangeTraits
from pandomq.broker.exchanges.headers import HeadersExchange
from pandomq.errors import ChannelFault
from pandomq.fieldtable import Float32, Int8, Int32, OctetString, Timestamp
from tests.unit.broker.routing.topology import binding, headers_match, mailboxes

NAMES = st.sampled_from(["a", "b", "x-a", "x-b"])
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        Int8(1),
        Int32(1),
        1.0,
        Float32(0.0),
        "1",
        b"1",
        OctetString(b"\xff"),
        b"\xff",
        "",
        [1],
        [],
    ]
)
TABLES = st.dictionaries(NAMES, VALUES, max_size=4)
MODES = st.sampled_from([{}, *({"x-match": mode} for mode in ("all", "any", "all-with-x", "any-with-x"))])
ARGUMENTS = st.builds(lambda mode, table: {**table, **mode}, MODES, TABLES)

BOXES = mailboxes(f"q{number}" for number in range(10))


def headers_exchange() -> HeadersExchange:
    return HeadersExchange("h", ExchangeTraits())


@given(st.lists(ARGUMENTS, max_size=10), TABLES, st.sets(st.integers(0, 9)))
def test_matches_as_defined(arguments: list[dict[str, Any]], headers: dict[str, Any], gone: set[int]) -> None:
    exchange = headers_exchange()
    bindings = [binding(exchange, BOXES[f"q{number}"], "", table) for number, table in enumerate(arguments)]
    for entry in bindings:
        exchange.bind(entry)
    for number in gone & set(range(len(bindings))):
        exchange.unbind(bindings[number])
    expected = {
        f"q{number}" for number, table in enumerate(arguments) if number not in gone and headers_match(table, headers)
    }
    assert {destination.name for destination in exchange.match("ignored", headers)} == expected


@given(st.lists(ARGUMENTS, max_size=10))
def test_nothing_is_left_behind(arguments: list[dict[str, Any]]) -> None:
    exchange = headers_exchange()
    bindings = [binding(exchange, BOXES[f"q{number}"], "", table) for number, table in enumerate(arguments)]
    for entry in bindings:
        exchange.bind(entry)
    for entry in bindings:
        exchange.unbind(entry)
    assert not exchange._patterns
    assert not exchange._by_fact
    assert not exchange._unconditional


@pytest.mark.parametrize(
    ("wanted", "given", "equal"),
    [
        ("x", b"x", True),
        (Int8(5), 5, True),
        (Timestamp(5), Int32(5), True),
        (Float32(1.5), 1.5, True),
        (1, True, False),
        (1, 1.0, False),
        (1, "1", False),
        (1, Decimal(1), False),
        (Decimal("1.5"), Decimal("1.5"), True),
        ("x", None, False),
        (None, None, True),
        (["q"], ["q"], True),
        ({"b": 1}, {"b": 1}, True),
        ({"b": 1}, {"b": 2}, False),
    ],
)
def test_values_compare_as_in_rabbitmq(wanted: Any, given: Any, equal: bool) -> None:
    exchange = headers_exchange()
    exchange.bind(binding(exchange, BOXES["q0"], "", {"a": wanted}))
    assert bool(list(exchange.match("", {"a": given}))) is equal


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("foo", 'Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x'),
        ('x"y', 'Invalid x-match field value <<"x\\"y">>; expected all, any, all-with-x, or any-with-x'),
        (Int32(5), "Invalid x-match field type signedint (value 5); expected longstr"),
        (2**40, "Invalid x-match field type long (value 1099511627776); expected longstr"),
        (None, "Invalid x-match field type void (value undefined); expected longstr"),
        (True, "Invalid x-match field type bool (value true); expected longstr"),
        (b"all", 'Invalid x-match field type binary (value <<"all">>); expected longstr'),
        (["all"], 'Invalid x-match field type array (value [{longstr,<<"all">>}]); expected longstr'),
        ({"a": Int32(1)}, 'Invalid x-match field type table (value [{<<"a">>,signedint,1}]); expected longstr'),
    ],
)
def test_wrong_x_match(mode: Any, text: str) -> None:
    with pytest.raises(ChannelFault) as raised:
        headers_exchange().check_binding("", {"x-match": mode})
    assert raised.value.reply_code == 406
    assert raised.value.reply_text == f"PRECONDITION_FAILED - {text}"


@pytest.mark.parametrize("arguments", [{}, {"x-match": "all"}, {"x-match": "any-with-x", "a": None}])
def test_right_x_match(arguments: dict[str, Any]) -> None:
    headers_exchange().check_binding("", arguments)
