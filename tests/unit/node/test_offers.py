"""Server properties: who we say we are."""

import struct

from pandomq import __version__
from pandomq.methods import ConnectionStart
from pandomq.node.offers import make_offer
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import decode_method


def server_properties(product: str) -> dict[str, object]:
    frame = make_offer(NodeSettings(product=product), ("PLAIN",)).start_frame
    (size,) = struct.unpack_from(">I", frame, 3)
    start = decode_method(frame[7 : 7 + size])
    assert isinstance(start, ConnectionStart)
    return dict(start.server_properties)


def test_our_own_name_and_version() -> None:
    properties = server_properties("PandoMQ")
    assert (properties["product"], properties["version"]) == ("PandoMQ", __version__)


def test_another_name_brings_a_version_that_fits_it() -> None:
    properties = server_properties("RabbitMQ")
    assert properties["product"] == "RabbitMQ"
    assert str(properties["version"]).startswith("3.13.")
    assert properties["pandomq_version"] == __version__
