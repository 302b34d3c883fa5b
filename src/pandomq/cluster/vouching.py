"""What a broker says of a client when it dials a tunnel for it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pandomq.cluster.hello import TRUNK, TUNNEL, Hello
from pandomq.cluster.limits import (
    NAME_BYTES_MAX,
    TUNNEL_FRAME_BYTES_MAX,
    TUNNEL_HEARTBEAT_S,
    VOUCHED_PROPERTIES_BYTES_MAX,
)
from pandomq.errors import ConnectionFault
from pandomq.fieldtable import FieldTable, decode_table, encode_table
from pandomq.limits import CHANNEL_ID_MAX
from pandomq.wire.offer import Agreed

TUNNEL_AGREED: Final = Agreed(CHANNEL_ID_MAX, TUNNEL_FRAME_BYTES_MAX, TUNNEL_HEARTBEAT_S)
"""What both ends of a tunnel propose. How many channels a client may have is the matter of its own broker."""

_KEPT: Final = ("capabilities", "connection_name", "product", "version")
"""Of properties that are too long as a whole, in this order, as many as fit."""


def vouch(hello: Hello, *, user: str, peer: str, properties: FieldTable, trunk: bool) -> Hello:
    """A hello for a tunnel, from one for a link. It names no members: who is dialed knows them."""
    return msgspec.structs.replace(
        hello,
        members=(),
        purpose=TRUNK if trunk else TUNNEL,
        user=user,
        peer=peer[:NAME_BYTES_MAX],
        properties=_encoded(properties),
    )


def vouched_properties(hello: Hello) -> dict[str, Any]:
    try:
        return decode_table(hello.properties)[0] if hello.properties else {}
    except ConnectionFault:
        return {}


def _encoded(properties: FieldTable) -> bytes:
    encoded = encode_table(properties)
    if len(encoded) <= VOUCHED_PROPERTIES_BYTES_MAX:
        return encoded
    kept: dict[str, Any] = {}
    for name in _KEPT:
        if name in properties and len(encode_table({**kept, name: properties[name]})) <= VOUCHED_PROPERTIES_BYTES_MAX:
            kept[name] = properties[name]
    return encode_table(kept)
