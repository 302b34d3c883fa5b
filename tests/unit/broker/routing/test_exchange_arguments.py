"""Which declares are refused, in RabbitMQ's words."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.broker.exchanges.catalogue import TYPES
from pandomq.broker.exchanges.exchange_arguments import check_declare, check_equivalent, check_type
from pandomq.errors import ChannelFault
from pandomq.fieldtable import Int32
from pandomq.methods import ExchangeDeclare
from tests.unit.broker.routing.topology import exchange


def refusal(raised: pytest.ExceptionInfo[ChannelFault]) -> str:
    assert raised.value.reply_code == 406
    return raised.value.reply_text.removeprefix("PRECONDITION_FAILED - ")


def test_known_types() -> None:
    for name in TYPES:
        check_type(name)


@pytest.mark.parametrize("name", ["", "foo", "Direct"])
def test_unknown_type(name: str) -> None:
    with pytest.raises(ChannelFault) as raised:
        check_type(name)
    assert refusal(raised) == f"unknown exchange type '{name}'"


@pytest.mark.parametrize(
    ("type_name", "arguments"),
    [
        ("direct", {}),
        ("direct", {"alternate-exchange": "a"}),
        ("direct", {"alternate-exchange": "", "whatever": 1}),
        ("x-consistent-hash", {"hash-header": ""}),
        ("x-consistent-hash", {"hash-property": "timestamp"}),
        ("x-delayed-message", {"x-delayed-type": "topic"}),
        ("x-delayed-message", {"x-delayed-type": "x-consistent-hash", "hash-header": "h"}),
    ],
)
def test_valid_arguments(type_name: str, arguments: dict[str, Any]) -> None:
    check_declare(ExchangeDeclare(exchange="x", type=type_name, arguments=arguments), "/")
    assert exchange("x", type_name, arguments=arguments).type_name == type_name


@pytest.mark.parametrize(
    ("type_name", "arguments", "text"),
    [
        (
            "fanout",
            {"alternate-exchange": Int32(5)},
            "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'x' in vhost '/'",
        ),
        (
            "fanout",
            {"alternate-exchange": None},
            "invalid type 'void' for arg 'alternate-exchange' in exchange 'x' in vhost '/'",
        ),
        (
            "x-consistent-hash",
            {"hash-header": "h", "hash-property": "message_id"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ("x-consistent-hash", {"hash-property": "foo"}, "Unsupported property: foo"),
        ("x-consistent-hash", {"hash-property": ""}, "Unsupported property: "),
        ("x-consistent-hash", {"hash-header": 5}, "invalid type 'long' for arg 'hash-header'"),
        ("x-delayed-message", {}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        (
            "x-delayed-message",
            {"x-delayed-type": "x-delayed-message"},
            "Invalid argument, 'x-delayed-type' must be an existing exchange type",
        ),
        ("x-delayed-message", {"x-delayed-type": "foo"}, "unknown exchange type 'foo'"),
        (
            "x-delayed-message",
            {"x-delayed-type": "x-consistent-hash", "hash-property": "foo"},
            "Unsupported property: foo",
        ),
    ],
)
def test_invalid_arguments(type_name: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ChannelFault) as raised:
        check_declare(ExchangeDeclare(exchange="x", type=type_name, arguments=arguments), "/")
    assert refusal(raised) == text


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        ({"type": "fanout"}, "'type' for exchange 'x' in vhost 'v': received 'fanout' but current is 'direct'"),
        ({"durable": True}, "'durable' for exchange 'x' in vhost 'v': received 'true' but current is 'false'"),
        ({"auto_delete": True}, "'auto_delete' for exchange 'x' in vhost 'v': received 'true' but current is 'false'"),
        ({"internal": True}, "'internal' for exchange 'x' in vhost 'v': received 'true' but current is 'false'"),
        (
            {"arguments": {"alternate-exchange": "BB"}},
            "'alternate-exchange' for exchange 'x' in vhost 'v': received 'BB' but current is 'AA'",
        ),
        (
            {"arguments": {}},
            "'alternate-exchange' for exchange 'x' in vhost 'v': "
            "received none but current is the value 'AA' of type 'longstr'",
        ),
        (
            {"arguments": {"alternate-exchange": Int32(5)}},
            "'alternate-exchange' for exchange 'x' in vhost 'v': received '5' but current is 'AA'",
        ),
    ],
)
def test_second_declare_that_differs(difference: dict[str, Any], text: str) -> None:
    arguments = {"alternate-exchange": "AA"}
    existing = exchange("x", "direct", arguments=arguments)
    with pytest.raises(ChannelFault) as raised:
        check_equivalent(
            existing, ExchangeDeclare(**{"exchange": "x", "type": "direct", "arguments": arguments, **difference}), "v"
        )
    assert refusal(raised) == f"inequivalent arg {text}"


def test_second_declare_with_an_alternate_for_one_without() -> None:
    with pytest.raises(ChannelFault) as raised:
        check_equivalent(
            exchange("x", "direct"),
            ExchangeDeclare(exchange="x", type="direct", arguments={"alternate-exchange": "foo"}),
            "/",
        )
    assert refusal(raised) == (
        "inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': "
        "received the value 'foo' of type 'longstr' but current is none"
    )


def test_second_declare_may_differ_in_other_arguments() -> None:
    check_equivalent(
        exchange("x", "direct"), ExchangeDeclare(exchange="x", type="direct", arguments={"foo": "bar"}), "/"
    )
