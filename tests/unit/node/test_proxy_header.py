"""The PROXY protocol's headers, whole, in pieces, and broken."""

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.node.clients.proxy_header import (
    BINARY_START,
    BehindProxy,
    NotAProxyHeader,
    ProxyHeader,
    TrustedProxies,
    is_loopback,
    read_proxy_header,
)


def binary(command: int, family: int, addresses: bytes) -> bytes:
    return BINARY_START + struct.pack(">BBH", command, family, len(addresses)) + addresses


FOUR = ip_address("192.0.2.7").packed + ip_address("192.0.2.1").packed + struct.pack(">HH", 50000, 5672)
SIX = ip_address("2001:db8::7").packed + ip_address("2001:db8::1").packed + struct.pack(">HH", 50000, 5672)
HEADERS = [
    (b"PROXY TCP4 192.0.2.7 192.0.2.1 50000 5672\r\n", ("192.0.2.7", 50000)),
    (b"PROXY TCP6 2001:db8::7 2001:db8::1 50000 5672\r\n", ("2001:db8::7", 50000)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None),
    (binary(0x21, 0x11, FOUR), ("192.0.2.7", 50000)),
    (binary(0x21, 0x11, FOUR + b"\x04\x00\x01x"), ("192.0.2.7", 50000)),
    (binary(0x21, 0x21, SIX), ("2001:db8::7", 50000)),
    (binary(0x20, 0x00, b""), None),
]


@pytest.mark.parametrize(("header", "peer"), HEADERS)
def test_a_header_is_read_as_soon_as_it_is_complete(header: bytes, peer: tuple[str, int] | None) -> None:
    for end in range(len(header)):
        assert read_proxy_header(header[:end]) is None
    assert read_proxy_header(header) == ProxyHeader(peer, len(header))
    assert read_proxy_header(header + b"AMQP\0\0\x09\x01") == ProxyHeader(peer, len(header))


@pytest.mark.parametrize(
    "data",
    [
        b"AMQP\0\0\x09\x01",
        b"PROXY TCP4 192.0.2.7\r\n",
        b"PROXY TCP4 nobody nowhere 1 2\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 x 5672\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 \xb2 5672\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 65536 5672\r\n",
        b"PROXY " + b"x" * 200,
        b"PROXX",
        binary(0x31, 0x11, FOUR),
        binary(0x21, 0x11, FOUR[:-1]),
        BINARY_START + struct.pack(">BBH", 0x21, 0x11, 60000),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(NotAProxyHeader):
        read_proxy_header(data)


@given(st.binary(max_size=200))
def test_no_octets_break_it(data: bytes) -> None:
    try:
        header = read_proxy_header(data)
    except NotAProxyHeader:
        return
    assert header is None or 0 < header.length <= len(data)


TEXT = b"PROXY TCP4 %s 192.0.2.1 50000 5672\r\n"


@pytest.mark.parametrize(
    ("socket", "header", "is_near"),
    [
        ("127.0.0.1", TEXT % b"127.0.0.9", True),
        ("::1", TEXT % b"127.0.0.9", True),
        ("127.0.0.1", TEXT % b"192.0.2.7", False),
        ("192.0.2.9", TEXT % b"127.0.0.1", False),
        ("127.0.0.1", b"PROXY UNKNOWN\r\n", False),
        ("127.0.0.1", b"PROXY UNKNOWN 127.0.0.1 127.0.0.1 1 2\r\n", False),
        ("127.0.0.1", binary(0x20, 0x00, b""), False),
        ("127.0.0.1", binary(0x21, 0x00, b""), False),
    ],
)
def test_the_loopback_is_where_the_socket_is_and_the_client_as_well(socket: str, header: bytes, is_near: bool) -> None:
    end = BehindProxy((socket, 40000))
    end.expect_proxy(TrustedProxies(["0.0.0.0/0", "::/0"]))
    assert bytes(end.behind_proxy(header + b"AMQP")) == b"AMQP"
    assert end.from_loopback is is_near


def test_only_trusted_proxies_are_believed() -> None:
    trusted = TrustedProxies(["10.0.0.0/8", "2001:db8::1"])
    for host in ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"):
        assert host in trusted
    for host in ("11.0.0.1", "2001:db8::2", "", "nowhere"):
        assert host not in trusted
        end = BehindProxy((host, 40000))
        end.expect_proxy(trusted)
        with pytest.raises(NotAProxyHeader, match=r"is not among node\.trusted_proxies"):
            end.behind_proxy(TEXT % b"127.0.0.1")


def test_the_loopback_in_all_its_forms() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "::ffff:127.0.0.2")))
    assert not any(map(is_loopback, ("", "128.0.0.1", "::2", "::ffff:10.0.0.1", "localhost")))
