"""The broker's offer to each client: its identity, the login mechanisms, and the limits it proposes.

One offer is shared by all connections that were accepted under it, so its frames are encoded once.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pandomq import limits
from pandomq.errors import ConnectionFault, not_allowed
from pandomq.methods import ConnectionStart, ConnectionTune, ConnectionTuneOk
from pandomq.wire import sasl
from pandomq.wire.codec import encode_frame

CAPABILITIES: Final = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "direct_reply_to": True,
}


class Agreed(NamedTuple):
    """The values that both sides use after tune-ok."""

    channel_max: int
    frame_max: int
    heartbeat_s: int


PROPOSAL: Final = Agreed(limits.CHANNEL_MAX, limits.FRAME_BYTES_MAX, limits.HEARTBEAT_S)


class Offer:
    """Immutable. `more` are further server properties, for example the addresses of other brokers."""

    __slots__ = ("handshake_ms_max", "mechanisms", "message_bytes_max", "proposal", "start_frame", "tune_frame")

    def __init__(
        self,
        *,
        version: str,
        product: str = "PandoMQ",
        platform: str = "Python",
        cluster_name: str = "",
        more: Mapping[str, Any] | None = None,
        mechanisms: tuple[str, ...] = sasl.MECHANISMS,
        proposal: Agreed = PROPOSAL,
        message_bytes_max: int = limits.MESSAGE_BYTES_MAX,
        handshake_ms_max: int = limits.HANDSHAKE_MS_MAX,
    ) -> None:
        properties: dict[str, Any] = {
            "capabilities": CAPABILITIES,
            "cluster_name": cluster_name,
            "copyright": "Copyright (c) the PandoMQ authors",
            "information": "Licensed under the Apache License 2.0",
            "platform": platform,
            "product": product,
            "version": version,
            **(more or {}),
        }
        self.mechanisms = mechanisms
        self.proposal = proposal
        self.message_bytes_max = message_bytes_max
        self.handshake_ms_max = handshake_ms_max
        self.start_frame = encode_frame(0, ConnectionStart(0, 9, properties, " ".join(mechanisms).encode(), b"en_US"))
        self.tune_frame = encode_frame(0, ConnectionTune(*proposal))

    def agree(self, answer: ConnectionTuneOk) -> Agreed:
        """A client may request lower values, but not higher ones; 0 means no limit and counts as higher than any other
        number."""
        channel_max, frame_max, _ = self.proposal
        _check("channel_max", answer.channel_max, 0, channel_max, " (no limit)")
        _check("frame_max", answer.frame_max, limits.FRAME_BYTES_MIN, frame_max, "")
        agreed = Agreed(answer.channel_max, answer.frame_max, answer.heartbeat)
        # Most clients accept the offer, and may share one object.
        return self.proposal if agreed == self.proposal else agreed


def _check(name: str, value: int, low: int, high: int, meaning_of_zero: str) -> None:
    if value != 0 and value < low:
        raise _refusal(f"{name} = {value} is lower than the minimum allowed value ({low})")
    if high != 0 and (value == 0 or value > high):
        meaning = "" if value else meaning_of_zero
        raise _refusal(f"{name} = {value}{meaning} is higher than the maximum allowed value ({high})")


def _refusal(what: str) -> ConnectionFault:
    return not_allowed(f"negotiated {what}").at(ConnectionTune.class_id, ConnectionTune.method_id)
