"""Addresses as a person types them."""

import pytest

from pandomq.runtime.listen import ListenAddress, listening_sockets


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
    assert ListenAddress.parse(text) == address
    assert str(ListenAddress.parse(text)) == shown


@pytest.mark.parametrize("text", ["", "host", "host:", "host:port", "host:-1"])
def test_the_error_for_a_malformed_address_names_the_expected_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected HOST:PORT"):
        ListenAddress.parse(text)


def test_a_port_that_is_too_large_is_named_with_the_largest() -> None:
    with pytest.raises(ValueError, match=r"'host:70000' is not an address: the largest port is 65535"):
        ListenAddress.parse("host:70000")


def test_localhost_listens_on_both_families_at_one_port() -> None:
    sockets = listening_sockets(ListenAddress("localhost", 0))
    try:
        assert sockets[0].getsockname()[0] == "127.0.0.1"
        assert len({sock.getsockname()[1] for sock in sockets}) == 1
    finally:
        for sock in sockets:
            sock.close()


def test_an_address_in_use_is_an_error() -> None:
    (first, *rest) = listening_sockets(ListenAddress("127.0.0.1", 0))
    try:
        with pytest.raises(OSError, match="in use"):
            listening_sockets(ListenAddress("127.0.0.1", first.getsockname()[1]))
    finally:
        for sock in (first, *rest):
            sock.close()
