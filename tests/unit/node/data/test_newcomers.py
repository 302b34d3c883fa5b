"""Clients of the data port that have not logged in take a bounded part of its connections, for a bounded time."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.node.data import limits
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings

from .data_port import HELLO, Connection, DataPort

PROXY = ("127.0.0.1", 4000)


def crowd(port: DataPort, count: int, address: str) -> list[Connection]:
    return [port.connect((address.format(number), 4000)) for number in range(count)]


def relayed(port: DataPort, address: str) -> Connection:
    connection = port.connect(PROXY, through_proxy=True)
    connection.say_octets(f"PROXY TCP4 {address} 192.0.2.1 4000 5680\r\n".encode())
    return connection


@pytest.fixture
def port() -> DataPort:
    settings = NodeSettings(password_log_cost=2, loopback_only_users=())
    return DataPort(Node(settings, Random(1), 1_000_000))


@pytest.mark.proves("R38")
@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::{:x}"])
def test_one_network_has_a_bounded_number_of_clients_that_have_not_logged_in(port: DataPort, address: str) -> None:
    hostile = crowd(port, limits.NEWCOMERS_PER_NETWORK_MAX + 8, address)
    assert [one.aborted for one in hostile] == [False] * limits.NEWCOMERS_PER_NETWORK_MAX + [True] * 8
    assert port.connect(("198.51.100.1", 4000)).greet()["node"] == "n1"
    # There is room again when one is gone, or has logged in.
    hostile[0].lose()
    assert hostile[1].greet()["node"] == "n1"
    assert [one.aborted for one in crowd(port, 3, address)] == [False, False, True]


@pytest.mark.proves("R38")
def test_clients_behind_a_proxy_count_for_their_own_networks(port: DataPort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NEWCOMERS_PER_NETWORK_MAX", 2)
    silent = [port.connect(PROXY, through_proxy=True) for _ in range(3)]
    hostile = [relayed(port, "192.0.2.7") for _ in range(3)]
    assert [one.aborted for one in hostile] == [False, False, True]
    assert relayed(port, "192.0.2.8").greet()["node"] == "n1"
    assert not any(one.aborted for one in silent)


@pytest.mark.proves("R38")
def test_a_connection_that_does_not_log_in_makes_room_for_another(
    port: DataPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 3)
    known = port.connect()
    assert known.greet()["node"] == "n1"
    first, second = crowd(port, 2, "192.0.2.{}")
    port.pass_ms(limits.CROWDED_HELLO_MS_MAX - 1)
    early = port.connect()
    assert early.answer()["error"] == 503
    port.pass_ms(1)
    late = port.connect()
    assert [one.aborted for one in (known, first, second, late)] == [False, True, False, False]
    assert late.greet()["node"] == "n1"
    assert len(port.node.data.clients) == 3


@pytest.mark.proves("R38")
def test_a_login_that_waits_in_line_makes_room_in_time_and_after_silent_clients(
    port: DataPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guesses whose refusals wait could once take all connections."""
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 3)
    guesses = [port.connect(), port.connect()]
    for guess in guesses:
        guess.say({**HELLO, "password": "wrong"})
        guess.client.since_ms -= limits.CROWDED_HELLO_MS_MAX - 1
    silent = port.connect()
    assert port.connect().answer()["error"] == 503
    for client in (*guesses, silent):
        client.client.since_ms = port.now_ms - limits.CROWDED_HELLO_MS_MAX
    late = [port.connect(), port.connect()]
    assert [one.aborted for one in (silent, *guesses)] == [True, True, False]
    assert [one.greet()["node"] for one in late] == ["n1", "n1"]
    port.pass_ms(limits.HELLO_MS_MAX)
    assert len(port.node.data.clients) == 2


@pytest.mark.proves("R38")
def test_clients_for_which_there_was_no_room_take_none_and_are_few(
    port: DataPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 2)
    known = [port.connect(), port.connect()]
    assert [one.greet()["node"] for one in known] == ["n1", "n1"]
    refused = crowd(port, limits.REFUSED_MAX + 5, "192.0.2.{}")
    assert [one.aborted for one in refused] == [False] * limits.REFUSED_MAX + [True] * 5
    known[0].lose()
    # The refused ones have not closed their connections yet.
    assert port.connect(("198.51.100.1", 4000)).greet()["node"] == "n1"
