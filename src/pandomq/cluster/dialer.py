"""The dialing end of a link: logs in as a broker (`introduction`), opens one channel, and publishes.

Only heartbeats and a close are expected once it is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.cluster.introduction import CLOSED_WITH_REASON, Introduction, IntroductionStage
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S
from pandomq.cluster.peer_messages import CHANNEL
from pandomq.errors import ConnectionFault
from pandomq.kernel import Frame, Scanner
from pandomq.limits import HANDSHAKE_FRAME_BYTES_MAX
from pandomq.methods import ChannelOpen, ChannelOpenOk, ConnectionClose, ConnectionCloseOk
from pandomq.wire.codec import HEARTBEAT_FRAME, decode_method
from pandomq.wire.offer import Agreed

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello

_AGREED: Final = Agreed(CHANNEL, LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S)


class Dialer(Introduction):
    __slots__ = ("_scanner",)

    def __init__(self, key: bytes, own: Hello, now_ms: int) -> None:
        """The connection is established. `own` has a nonce that was drawn only for it."""
        super().__init__(key, own, _AGREED, now_ms)
        self._scanner: Scanner | None = None
        """Set once the other end has accepted this broker."""

    def receive(self, data: bytes | memoryview) -> None:
        """Raises LinkRefused, after which there may still be something to send."""
        if self._scanner is None:
            self._shake_hands(data)
        else:
            self._heard = True
            self._scan(self._scanner, data)

    # The link is there, except for its channel.

    @property
    def _vhost(self) -> str:
        return "/"

    def _suits(self, offered: Agreed) -> Agreed:
        if offered.frame_max and offered.frame_max < LINK_FRAME_BYTES_MAX:
            raise self._end(f"the peer accepts frames of at most {offered.frame_max} bytes, which is too small")
        return _AGREED

    def _let_in(self) -> None:
        self._scanner = Scanner(HANDSHAKE_FRAME_BYTES_MAX, 0)
        self._send(ChannelOpen(), CHANNEL)
        held, self._held = self._held, b""
        self._scan(self._scanner, held)

    @property
    def _is_outside(self) -> bool:
        return self._scanner is None and self.stage is not IntroductionStage.OVER

    def _scan(self, scanner: Scanner, data: bytes | memoryview) -> None:
        for item in scanner.feed(data):
            if not isinstance(item, Frame):
                raise self._end("the server at that address is not a PandoMQ broker")
            if item.kind != HEARTBEAT_FRAME and self.stage is not IntroductionStage.OVER:
                self._hear(item)

    def _hear(self, frame: Frame) -> None:
        try:
            method = decode_method(frame.payload)
        except ConnectionFault as fault:
            raise self._end(f"the peer sent a malformed method: {fault}") from None
        match self.stage, method:
            case _, ConnectionClose(_, reply_text):
                self._send(ConnectionCloseOk())
                raise self._end(f"{CLOSED_WITH_REASON}{reply_text}", lasting=False)
            case IntroductionStage.OPENING, ChannelOpenOk():
                self.stage = IntroductionStage.OPEN
            case _:
                raise self._end(f"the peer sent {method.amqp_name}, which is not expected here")
