"""The hello that a broker sends when it dials a tunnel to the root on behalf of one of its clients."""

from __future__ import annotations

from typing import Final

import msgspec

from pandomq.cluster.hello import Hello
from pandomq.cluster.limits import (
    NAME_BYTES_MAX,
    TUNNEL_FRAME_BYTES_MAX,
    TUNNEL_HEARTBEAT_S,
    VOUCHED_PROPERTIES_BYTES_MAX,
)
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import FieldTable, decode_table
from pandomq.limits import CHANNEL_ID_MAX
from pandomq.wire.offer import Agreed

TUNNEL_AGREED: Final = Agreed(CHANNEL_ID_MAX, TUNNEL_FRAME_BYTES_MAX, TUNNEL_HEARTBEAT_S)
"""The limits that both ends of a tunnel propose. The broker to which a client is connected limits the client's
channels."""

_IDENTITY_MAX: Final = 2**63 - 1


def vouch(hello: Hello, *, purpose: str, user: str, peer: str, properties: bytes, client: int = 0) -> Hello:
    """Makes the hello for a client's tunnel from the broker's hello for a link. The result names no members: the dialed
    broker knows them."""
    assert len(properties) <= VOUCHED_PROPERTIES_BYTES_MAX
    return msgspec.structs.replace(
        hello,
        members=(),
        purpose=purpose,
        user=user,
        peer=peer[:NAME_BYTES_MAX],
        properties=properties,
        client=client,
    )


def identity_of(hello: Hello) -> int:
    """The identity of the client's connection: unique across brokers and time, and of two to the same broker the newer
    one has the higher; 0 if there is none."""
    return (int.from_bytes(hello.life.encode(), "big") + hello.client) % _IDENTITY_MAX + 1 if hello.client else 0


def vouched_properties(hello: Hello) -> FieldTable:
    try:
        return decode_table(hello.properties)[0] if hello.properties else {}
    except ConnectionFault:
        return {}
