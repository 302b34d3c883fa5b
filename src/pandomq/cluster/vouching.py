"""What a broker says of a client when it dials a tunnel for it."""

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
"""What both ends of a tunnel propose. How many channels a client may have is the matter of its own broker."""


def vouch(hello: Hello, *, purpose: str, user: str, peer: str, properties: bytes) -> Hello:
    """A hello for a tunnel, from one for a link. It names no members: who is dialed knows them."""
    assert len(properties) <= VOUCHED_PROPERTIES_BYTES_MAX
    return msgspec.structs.replace(
        hello, members=(), purpose=purpose, user=user, peer=peer[:NAME_BYTES_MAX], properties=properties
    )


def vouched_properties(hello: Hello) -> FieldTable:
    try:
        return decode_table(hello.properties)[0] if hello.properties else {}
    except ConnectionFault:
        return {}
