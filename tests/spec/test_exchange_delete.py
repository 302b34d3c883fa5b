"""exchange.delete: if-unused, no-wait, missing exchanges, and those that may not be deleted."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def gone(channel: Channel, exchange: str) -> None:
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    channel.refused(404, text, "exchange.declare", exchange=exchange, type="direct", passive=True)


def test_delete(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    channel.rpc("exchange.delete", exchange=name)
    gone(channel, name)


def test_deleting_a_missing_exchange_is_no_error(channel: Channel, name: str) -> None:
    channel.rpc("exchange.delete", exchange=name)
    channel.rpc("exchange.delete", exchange=name, if_unused=True)


def test_no_wait(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    channel.send("exchange.delete", exchange=name, no_wait=True)
    channel.send("exchange.delete", exchange=name, no_wait=True)
    channel.expect_nothing()
    gone(channel, name)


def test_a_deleted_name_may_be_used_for_another_type(channel: Channel, name: str) -> None:
    for kind in ("direct", "fanout", "topic"):
        channel.declare_exchange(name, kind)
        channel.rpc("exchange.delete", exchange=name)


@pytest.mark.parametrize("to_an_exchange", [False, True])
def test_if_unused_refuses_an_exchange_with_bindings(channel: Channel, name: str, to_an_exchange: bool) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    if to_an_exchange:
        channel.rpc("exchange.bind", source=name, destination="amq.fanout", routing_key="k")
    else:
        channel.bind(queue, name, "k")
    text = f"PRECONDITION_FAILED - exchange '{name}' in vhost '/' in use"
    channel.refused(406, text, "exchange.delete", exchange=name, if_unused=True)


def test_if_unused_does_not_mind_being_a_destination(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    channel.rpc("exchange.bind", source="amq.direct", destination=name, routing_key=name)
    channel.rpc("exchange.delete", exchange=name, if_unused=True)
    gone(channel, name)


def test_if_unused_deletes_once_the_last_binding_is_gone(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    channel.bind(queue, name, "k")
    channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key="k")
    channel.rpc("exchange.delete", exchange=name, if_unused=True)
    gone(channel, name)


def test_bindings_go_with_the_exchange(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    channel.bind(queue, name, "k")
    channel.rpc("exchange.delete", exchange=name)
    channel.declare_exchange(name, "direct")
    channel.publish("m", "k", name, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312
    assert channel.counts(queue) == (0, 0)


@pytest.mark.parametrize("exchange", ["amq.direct", "amq.topic", "amq.missing"])
def test_the_brokers_own_exchanges_stay(channel: Channel, exchange: str) -> None:
    text = f"ACCESS_REFUSED - deletion of system exchange '{exchange}' in vhost '/' not allowed"
    channel.refused(403, text, "exchange.delete", exchange=exchange)


def test_the_default_exchange_stays(channel: Channel) -> None:
    text = "ACCESS_REFUSED - operation not permitted on the default exchange"
    channel.refused(403, text, "exchange.delete", exchange="")


def test_publishing_to_an_exchange_that_was_deleted(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "fanout")
    channel.publish("m", "k", name)
    channel.rpc("exchange.delete", exchange=name)
    channel.publish("m", "k", name)
    channel.expect_close(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'", "basic.publish")
