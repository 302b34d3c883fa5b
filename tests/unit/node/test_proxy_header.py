"""The PROXY protocol's headers, whole, in pieces, and broken."""

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.node.proxy_header import BINARY_START, NotAProxyHeader, ProxyHeader, read_proxy_header


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
