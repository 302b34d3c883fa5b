"""What a node offers to those who connect, as its settings say."""

from pandomq import __version__
from pandomq.node.settings import NodeSettings
from pandomq.wire.offer import Agreed, Offer


def make_offer(settings: NodeSettings, mechanisms: tuple[str, ...]) -> Offer:
    return Offer(
        version=__version__,
        product=settings.product,
        cluster_name=settings.name,
        mechanisms=mechanisms,
        proposal=Agreed(settings.channel_max, settings.frame_bytes_max, settings.heartbeat_s),
        message_bytes_max=settings.message_bytes_max,
        handshake_ms_max=settings.handshake_ms_max,
    )
