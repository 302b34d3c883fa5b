"""Addresses as a person types them."""

import pytest

from pandomq.runtime.listen import Address, listening_sockets


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("127.0.0.1:5672", ("127.0.0.1", 5672), "127.0.0.1:5672"),
        ("[::1]:5672", ("::1", 5672), "[::1]:5672"),
        (":5672", ("0.0.0.0", 5672), "0.0.0.0:5672"),
        ("5672", ("127.0.0.1", 5672), "127.0.0.1:5672"),
    ],
)
def test_parse(text: str, address: tuple[str, int], shown: str) -> None:
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == shown


@pytest.mark.parametrize("text", ["", "host", "host:", "host:port", "host:70000", "host:-1"])
def test_a_bad_address_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected HOST:PORT"):
        Address.parse(text)


def test_loopback_is_heard_on_both_families_at_one_port() -> None:
    sockets = listening_sockets(Address("localhost", 0))
    try:
        assert sockets[0].getsockname()[0] == "127.0.0.1"
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
    finally:
        for sock in sockets:
            sock.close()


def test_an_address_in_use_is_an_error() -> None:
    (first, *rest) = listening_sockets(Address("127.0.0.1", 0))
    try:
        with pytest.raises(OSError, match="in use"):
            listening_sockets(Address("127.0.0.1", first.getsockname()[1]))
    finally:
        for sock in (first, *rest):
            sock.close()
