"""The offers of a node to clients that connect, according to its settings."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from pandomq import __version__
from pandomq.node.settings import NodeSettings
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.sasl import CLUSTER, EXTERNAL


class AddressKind(Enum):
    """Which clients may log in at an address."""

    CLIENTS = auto()
    BROKERS = auto()
    BOTH = auto()


IMPLEMENTATION: Final = "PandoMQ"
RABBITMQ: Final = "RabbitMQ"
RABBITMQ_VERSION: Final = "3.13.7"
"""The RabbitMQ version whose protocol and HTTP API this broker implements: clients use it to choose how to use
basic.qos, for example. PandoMQ's own name and version stand beside it."""


def announced_version(product: str) -> str:
    return RABBITMQ_VERSION if product == RABBITMQ else __version__


def make_offer(
    settings: NodeSettings, mechanisms: tuple[str, ...], announced: Mapping[str, object] | None = None
) -> Offer:
    return Offer(
        version=announced_version(settings.product),
        product=settings.product,
        platform=settings.platform,
        more={
            "implementation": IMPLEMENTATION,
            "pandomq_version": __version__,
            **settings.data.properties,
            **(announced or {}),
        },
        cluster_name=settings.name,
        mechanisms=mechanisms,
        proposal=Agreed(settings.channel_max, settings.frame_bytes_max, settings.heartbeat_s),
        message_bytes_max=settings.message_bytes_max,
        handshake_ms_max=settings.handshake_ms_max,
    )


def mechanisms_at(place: AddressKind, settings: NodeSettings, *, certified: bool, clustered: bool) -> tuple[str, ...]:
    """The login mechanisms there, with a certificate or without one."""
    clients = () if place is AddressKind.BROKERS else settings.mechanisms
    brokers = (CLUSTER,) if clustered and place is not AddressKind.CLIENTS else ()
    return tuple(name for name in clients if certified or name != EXTERNAL) + brokers
