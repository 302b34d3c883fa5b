"""What a node offers to those who connect, as its settings say."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from pandomq import __version__
from pandomq.node.settings import NodeSettings
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.sasl import CLUSTER, EXTERNAL


class Place(Enum):
    """Who may come in at an address."""

    CLIENTS = auto()
    BROKERS = auto()
    BOTH = auto()


COMPATIBLE_VERSIONS: Final = {"RabbitMQ": "3.13.7"}
"""Clients that insist on a product choose by its version how to use basic.qos, for one: they get one that means what
we do. Our own stands beside it."""


def make_offer(
    settings: NodeSettings, mechanisms: tuple[str, ...], announced: Mapping[str, object] | None = None
) -> Offer:
    return Offer(
        version=COMPATIBLE_VERSIONS.get(settings.product, __version__),
        product=settings.product,
        more={"pandomq_version": __version__, **settings.data.properties, **(announced or {})},
        cluster_name=settings.name,
        mechanisms=mechanisms,
        proposal=Agreed(settings.channel_max, settings.frame_bytes_max, settings.heartbeat_s),
        message_bytes_max=settings.message_bytes_max,
        handshake_ms_max=settings.handshake_ms_max,
    )


def mechanisms_at(place: Place, settings: NodeSettings, *, certified: bool, clustered: bool) -> tuple[str, ...]:
    """How to log in there, with a certificate or without one."""
    clients = () if place is Place.BROKERS else settings.mechanisms
    brokers = (CLUSTER,) if clustered and place is not Place.CLIENTS else ()
    return tuple(name for name in clients if certified or name != EXTERNAL) + brokers
