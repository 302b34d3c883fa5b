"""Connections to the data port: through a proxy, with a certificate, or in a way that the broker does not allow."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings

from .data_port import HELLO, DataPort, Fields, encode

HEADER = b"PROXY TCP4 198.51.100.7 192.0.2.1 50000 5680\r\n"
FROM_LOOPBACK = b"PROXY TCP4 127.0.0.9 127.0.0.1 50000 5680\r\n"
BY_CERTIFICATE: Fields = {"ask": "hello", "version": 1, "mechanism": "EXTERNAL", "vhost": "/"}


def data_port(*mechanisms: str, loopback_only: tuple[str, ...] = ()) -> DataPort:
    settings = NodeSettings(password_log_cost=2, mechanisms=mechanisms, loopback_only_users=loopback_only)
    return DataPort(Node(settings, Random(1), 1_000_000))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_header_of_a_proxy_names_the_address_of_the_client(size: int) -> None:
    port = data_port("PLAIN")
    connection = port.connect(through_proxy=True)
    octets = HEADER + encode(HELLO)
    for at in range(0, len(octets), size):
        connection.say_octets(octets[at : at + size])
    assert connection.answer()["node"] == "n1"
    (view,) = port.node.views.data.connections()
    assert (view.peer, view.name) == (("198.51.100.7", 50000), "198.51.100.7:50000")


def test_a_user_of_the_loopback_is_one_behind_a_proxy_too() -> None:
    port = data_port("PLAIN", loopback_only=("guest",))
    there, here = port.connect(through_proxy=True), port.connect(through_proxy=True)
    there.say_octets(HEADER + encode(HELLO))
    here.say_octets(FROM_LOOPBACK + encode(HELLO))
    assert here.answer()["node"] == "n1"
    port.pass_ms(60_000)
    assert there.answer()["error"] == 403 and there.closed


def test_a_connection_from_a_proxy_without_a_header_is_closed_without_an_answer() -> None:
    port = data_port("PLAIN")
    connection = port.connect(through_proxy=True)
    connection.say(HELLO)
    assert connection.aborted and not connection.octets and not list(port.node.views.data.connections())


def test_a_certificate_logs_in_where_that_is_allowed() -> None:
    port = data_port("PLAIN", "EXTERNAL")
    connection = port.connect(tls=True, certificate_name="guest")
    assert connection.ask(BY_CERTIFICATE)["node"] == "n1"
    assert [view.user for view in port.node.views.data.connections()] == ["guest"]
    # A password is still good.
    assert port.connect(tls=True, certificate_name="guest").greet()["node"] == "n1"


@pytest.mark.parametrize("name", [None, "nobody"])
def test_a_certificate_that_names_no_user_is_refused(name: str | None) -> None:
    port = data_port("EXTERNAL")
    connection = port.connect(tls=True, certificate_name=name)
    connection.say(BY_CERTIFICATE)
    port.pass_ms(60_000)
    answer = connection.answer()
    assert (answer["error"], answer["text"]) == (403, "login refused: the client presented no certificate of a user")
    assert connection.closed


@pytest.mark.parametrize(
    ("mechanisms", "hello", "code", "text"),
    [
        (("PLAIN",), BY_CERTIFICATE, 403, "does not allow EXTERNAL"),
        (("EXTERNAL",), HELLO, 403, "does not allow PLAIN"),
        (("PLAIN",), {**HELLO, "mechanism": "GUESSING"}, 400, "PLAIN or EXTERNAL"),
        (("PLAIN",), {**HELLO, "mechanism": ["PLAIN"]}, 400, "PLAIN or EXTERNAL"),
    ],
)
def test_mechanisms_that_are_not_allowed_are_refused(
    mechanisms: tuple[str, ...], hello: Fields, code: int, text: str
) -> None:
    connection = data_port(*mechanisms).connect(tls=True, certificate_name="guest")
    answer = connection.ask(hello)
    assert answer["error"] == code and text in answer["text"] and connection.closed


def test_amqplain_allows_a_hello_with_a_password() -> None:
    assert data_port("AMQPLAIN").connect().greet()["node"] == "n1"
