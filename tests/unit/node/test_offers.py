"""Server properties: who we say we are."""

import struct

from pandomq import __version__
from pandomq.methods import ConnectionStart
from pandomq.node.clients.offers import make_offer
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import decode_method


def server_properties(settings: NodeSettings) -> dict[str, object]:
    frame = make_offer(settings, ("PLAIN",)).start_frame
    (size,) = struct.unpack_from(">I", frame, 3)
    start = decode_method(frame[7 : 7 + size])
    assert isinstance(start, ConnectionStart)
    return dict(start.server_properties)


def test_clients_find_the_name_and_a_version_of_rabbitmq_and_ours_beside_them() -> None:
    properties = server_properties(NodeSettings())
    assert properties["product"] == "RabbitMQ"
    assert str(properties["version"]).startswith("3.13.")
    assert (properties["implementation"], properties["pandomq_version"]) == ("PandoMQ", __version__)


def test_our_own_name_brings_our_own_version() -> None:
    properties = server_properties(NodeSettings(product="PandoMQ"))
    assert (properties["product"], properties["version"]) == ("PandoMQ", __version__)
    assert (properties["implementation"], properties["pandomq_version"]) == ("PandoMQ", __version__)
