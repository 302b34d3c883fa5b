"""The dialing end of a link: logs in as a broker (`introduction`), opens one channel, and publishes.

Nothing but heartbeats and a close is expected once it is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.cluster.introduction import GOOD_BYE, Introduction, Stage
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S
from pandomq.cluster.parcels import CHANNEL
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
        """The connection is there. `own` has a nonce that was drawn for it alone."""
        super().__init__(key, own, _AGREED, now_ms)
        self._scanner: Scanner | None = None
        """Once this broker was let in."""

    def receive(self, data: bytes | memoryview) -> None:
        """Raises LinkRefused, after which there may still be something to send."""
        if self._scanner is None:
            self._shake_hands(data)
        else:
            self._heard = True
            self._scan(self._scanner, data)

    # The link is there, but for its channel.

    @property
    def _vhost(self) -> str:
        return "/"

    def _suits(self, offered: Agreed) -> Agreed:
        if offered.frame_max and offered.frame_max < LINK_FRAME_BYTES_MAX:
            raise self._end(f"it takes frames of {offered.frame_max} bytes only")
        return _AGREED

    def _let_in(self) -> None:
        self._scanner = Scanner(HANDSHAKE_FRAME_BYTES_MAX, 0)
        self._send(ChannelOpen(), CHANNEL)
        held, self._held = self._held, b""
        self._scan(self._scanner, held)

    @property
    def _is_outside(self) -> bool:
        return self._scanner is None and self.stage is not Stage.OVER

    def _scan(self, scanner: Scanner, data: bytes | memoryview) -> None:
        for item in scanner.feed(data):
            if not isinstance(item, Frame):
                raise self._end("what answers there is not a broker of this kind")
            if item.kind != HEARTBEAT_FRAME and self.stage is not Stage.OVER:
                self._hear(item)

    def _hear(self, frame: Frame) -> None:
        try:
            method = decode_method(frame.payload)
        except ConnectionFault as fault:
            raise self._end(f"it said what cannot be read: {fault}") from None
        match self.stage, method:
            case _, ConnectionClose(_, reply_text):
                self._send(ConnectionCloseOk())
                raise self._end(f"{GOOD_BYE}{reply_text}", lasting=False)
            case Stage.OPENING, ChannelOpenOk():
                self.stage = Stage.OPEN
            case _:
                raise self._end(f"it said {method.amqp_name}, which has no place there")
