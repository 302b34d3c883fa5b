"""exchange.declare: kinds, flags, equivalence, reserved names, passive, no-wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Channel
from tests.support.fields import Typed

KINDS = ("direct", "fanout", "topic", "headers")
PREDECLARED = (
    ("amq.direct", "direct"),
    ("amq.fanout", "fanout"),
    ("amq.topic", "topic"),
    ("amq.headers", "headers"),
    ("amq.match", "headers"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flags", [{}, {"durable": True}, {"auto_delete": True}, {"internal": True}])
def test_declare_and_declare_again(channel: Channel, name: str, kind: str, flags: dict[str, bool]) -> None:
    for _ in range(2):
        channel.rpc("exchange.declare", exchange=name, type=kind, **flags)
    channel.rpc("exchange.declare", exchange=name, type=kind, passive=True)


@pytest.mark.parametrize(("exchange", "kind"), PREDECLARED)
def test_the_exchanges_that_are_there_from_the_start(channel: Channel, exchange: str, kind: str) -> None:
    channel.rpc("exchange.declare", exchange=exchange, type=kind, passive=True)
    channel.rpc("exchange.declare", exchange=exchange, type=kind, durable=True)


def test_no_wait_is_not_answered(channel: Channel, name: str) -> None:
    channel.send("exchange.declare", exchange=name, type="fanout", no_wait=True)
    channel.expect_nothing()
    channel.rpc("exchange.declare", exchange=name, type="fanout", passive=True)


def test_an_error_of_a_no_wait_declare_closes_the_channel(channel: Channel) -> None:
    text = "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"
    channel.refused(403, text, "exchange.declare", exchange="amq.mine", type="direct", no_wait=True)


def test_passive_looks_only_at_the_name(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct", durable=True)
    channel.rpc("exchange.declare", exchange=name, type="fanout", passive=True, auto_delete=True)


@pytest.mark.parametrize("exchange", ["amq.missing", "missing"])
def test_a_passive_declare_of_a_missing_exchange_is_refused(channel: Channel, exchange: str) -> None:
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    channel.refused(404, text, "exchange.declare", exchange=exchange, type="direct", passive=True)


@pytest.mark.parametrize("passive", [False, True])
def test_the_default_exchange_cannot_be_declared(channel: Channel, passive: bool) -> None:
    text = "ACCESS_REFUSED - operation not permitted on the default exchange"
    channel.refused(403, text, "exchange.declare", exchange="", type="direct", durable=True, passive=passive)


def test_names_that_begin_with_amq_are_reserved(channel: Channel) -> None:
    text = "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix 'amq.*'"
    channel.refused(403, text, "exchange.declare", exchange="amq.mine", type="direct")


@pytest.mark.ours_only
@pytest.mark.parametrize("kind", ["no-such-type", "x-made-up"])
def test_an_unknown_type(channel: Channel, name: str, kind: str) -> None:
    text = f"PRECONDITION_FAILED - unknown exchange type '{kind}'"
    channel.refused(406, text, "exchange.declare", exchange=name, type=kind)


@pytest.mark.ours_only
def test_an_empty_type(channel: Channel, name: str) -> None:
    channel.refused(406, "PRECONDITION_FAILED - …", "exchange.declare", exchange=name, type="")


DIFFERENCES: list[tuple[dict[str, Any], str]] = [
    ({"type": "fanout"}, "'type' for {}: received 'fanout' but current is 'direct'"),
    ({"durable": True}, "'durable' for {}: received 'true' but current is 'false'"),
    ({"auto_delete": True}, "'auto_delete' for {}: received 'true' but current is 'false'"),
    ({"internal": True}, "'internal' for {}: received 'true' but current is 'false'"),
    (
        {"arguments": {"alternate-exchange": "spare"}},
        "'alternate-exchange' for {}: received the value 'spare' of type 'longstr' but current is none",
    ),
]


@pytest.mark.parametrize(("changed", "text"), DIFFERENCES)
def test_a_declare_that_differs(channel: Channel, name: str, changed: dict[str, Any], text: str) -> None:
    channel.declare_exchange(name, "direct")
    expected = "PRECONDITION_FAILED - inequivalent arg " + text.format(f"exchange '{name}' in vhost '/'")
    channel.refused(406, expected, "exchange.declare", **({"exchange": name, "type": "direct"} | changed))


def test_a_declare_without_a_flag_that_is_set(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct", durable=True)
    text = f"PRECONDITION_FAILED - inequivalent arg 'durable' for exchange '{name}' in vhost '/': "
    text += "received 'false' but current is 'true'"
    channel.refused(406, text, "exchange.declare", exchange=name, type="direct")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"alternate-exchange": "b"}, "received 'b' but current is 'a'"),
        ({}, "received none but current is the value 'a' of type 'longstr'"),
    ],
)
def test_another_alternate_exchange(channel: Channel, name: str, given: dict[str, Any], text: str) -> None:
    channel.declare_exchange(name, "direct", arguments={"alternate-exchange": "a"})
    expected = f"PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange '{name}' in vhost '/': {text}"
    channel.refused(406, expected, "exchange.declare", exchange=name, type="direct", arguments=given)


def test_an_alternate_exchange_that_is_no_name(channel: Channel, name: str) -> None:
    text = "PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange "
    text += f"'{name}' in vhost '/'"
    arguments = {"alternate-exchange": Typed("I", 5)}
    channel.refused(406, text, "exchange.declare", exchange=name, type="direct", arguments=arguments)


def test_arguments_that_mean_nothing_are_ignored(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct", arguments={"x-whatever": [1, 2, {"three": None}]})
    channel.declare_exchange(name, "direct", arguments={"x-whatever": "else"})
    channel.declare_exchange(name, "direct")


@pytest.mark.parametrize("exchange", ["x" * 255, "ä ö ü 漢字", "with/slash", "with space and 'quote'"])
def test_unusual_names(channel: Channel, exchange: str) -> None:
    channel.declare_exchange(exchange, "fanout")
    queue = channel.declare_queue()
    channel.bind(queue, exchange)
    channel.publish("m", "k", exchange)
    found = channel.get(queue)
    assert found is not None
    assert found.exchange == exchange


def test_a_text_that_would_be_too_long_is_cut(channel: Channel) -> None:
    missing = "x" * 255
    text = f"NOT_FOUND - no exchange '{missing}"[:252] + "..."
    channel.refused(404, text, "exchange.declare", exchange=missing, type="direct", passive=True)


def test_an_internal_exchange_takes_no_publishes(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "fanout", internal=True)
    channel.publish("m", "k", name)
    text = f"ACCESS_REFUSED - cannot publish to internal exchange '{name}' in vhost '/'"
    channel.expect_close(403, text, "basic.publish")


def test_an_internal_exchange_accepts_messages_from_other_exchanges(channel: Channel, name: str) -> None:
    inner = channel.declare_exchange(name + "-inner", "fanout", internal=True)
    outer = channel.declare_exchange(name + "-outer", "fanout")
    queue = channel.declare_queue()
    channel.bind(queue, inner)
    channel.rpc("exchange.bind", source=outer, destination=inner)
    channel.publish("m", "k", outer)
    assert channel.drain(queue) == [b"m"]
