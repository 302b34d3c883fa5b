"""Where a broker's data port is: asked of its AMQP port, which says so before anybody logs in.

The first frame of an AMQP connection, connection.start, has the server's properties. `data` is the address of the data
port, `data_tls` of the one that speaks TLS; an address without a host means the host that was asked.
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


def find_data_port(asked: Address, context: ssl.SSLContext | None, timeout_s: float) -> Address:
    """Raises OSError if nobody answers, BadAnswer if there is no data port."""
    properties = server_properties(asked, context, timeout_s)
    name = "data" if context is None else "data_tls"
    place = properties.get(name)
    if not isinstance(place, str) or not place:
        raise BadAnswer(f"the broker at {asked} has no data port{'' if context is None else ' that speaks TLS'}")
    try:
        found = Address.parse(place)
    except ValueError:
        raise BadAnswer(f"the broker at {asked} says that its data port is at {place!r}") from None
    return found if found.host else found._replace(host=asked.host)


def server_properties(asked: Address, context: ssl.SSLContext | None, timeout_s: float) -> FieldTable:
    """Raises OSError if nobody answers, BadAnswer if it is no AMQP broker."""
    with connect(asked, context, timeout_s) as connection:
        connection.sendall(GREETING)
        with connection.makefile("rb") as stream:
            head = stream.read(_FRAME.size)
            if len(head) < _FRAME.size or head[0] != 1:
                raise BadAnswer(f"what answers at {asked} does not speak AMQP 0-9-1")
            size = _FRAME.unpack(head)[2]
            frame = stream.read(min(size, _FRAME_BYTES_MAX))
    try:
        if _START.unpack_from(frame)[:2] != (10, 10):
            raise BadAnswer(f"what answers at {asked} does not speak AMQP 0-9-1")
        return decode_table(frame, _START.size)[0]
    except (Fault, struct.error):
        raise BadAnswer(f"what answers at {asked} does not speak AMQP 0-9-1") from None


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
