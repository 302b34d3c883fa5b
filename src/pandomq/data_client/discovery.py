"""Finds data ports: a broker's AMQP port announces them before the login.

The first frame of an AMQP connection, connection.start, has the server's properties. `data` is the address of the data
port, `data_tls` of the one with TLS; an address without a host means the host of the AMQP port. A broker without a data
port names those of others, `data_brokers` and `data_brokers_tls`.
"""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Final

from pandomq.data_client.failures import BadAnswer
from pandomq.data_client.urls import Address
from pandomq.errors import Fault
from pandomq.fieldtable import FieldTable, decode_table

GREETING: Final = b"AMQP\x00\x00\x09\x01"
_FRAME: Final = struct.Struct(">BHI")
_START: Final = struct.Struct(">HHBB")
_FRAME_BYTES_MAX: Final = 1024 * 1024


def find_data_ports(asked: Address, context: ssl.SSLContext | None, timeout_s: float) -> list[Address]:
    """The addresses of data ports, at least one. Raises OSError if there is no answer, BadAnswer if there is no data
    port."""
    properties = server_properties(asked, context, timeout_s)
    kind = "" if context is None else "_tls"
    own, others = properties.get(f"data{kind}"), properties.get(f"data_brokers{kind}")
    places = [own] if isinstance(own, str) and own else others if isinstance(others, list) else []
    if not places:
        with_tls = "" if context is None else " with TLS"
        raise BadAnswer(
            f"the broker at {asked} has no data port{with_tls}, and knows none: name a primary of the cluster"
        )
    try:
        found = [Address.parse(str(place)) for place in places]
    except ValueError:
        raise BadAnswer(f"the broker at {asked} does not announce the address of its data port") from None
    return [place if place.host else place._replace(host=asked.host) for place in found]


def server_properties(asked: Address, context: ssl.SSLContext | None, timeout_s: float) -> FieldTable:
    """Raises OSError if there is no answer, BadAnswer if it is no AMQP broker."""
    with connect(asked, context, timeout_s) as connection:
        connection.sendall(GREETING)
        with connection.makefile("rb") as stream:
            head = stream.read(_FRAME.size)
            if len(head) < _FRAME.size or head[0] != 1:
                raise _not_amqp(asked)
            size = _FRAME.unpack(head)[2]
            frame = stream.read(min(size, _FRAME_BYTES_MAX))
    try:
        if _START.unpack_from(frame)[:2] != (10, 10):
            raise _not_amqp(asked)
        return decode_table(frame, _START.size)[0]
    except (Fault, struct.error):
        raise _not_amqp(asked) from None


def _not_amqp(asked: Address) -> BadAnswer:
    return BadAnswer(f"the server at {asked} does not speak AMQP 0-9-1: name the AMQP port of a broker")


def connect(address: Address, context: ssl.SSLContext | None, timeout_s: float) -> socket.socket:
    """Raises OSError."""
    connection = socket.create_connection(address, timeout_s)
    if context is None:
        return connection
    try:
        return context.wrap_socket(connection, server_hostname=address.host)
    except BaseException:
        connection.close()
        raise
