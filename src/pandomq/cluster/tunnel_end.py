"""The dialing end of a tunnel: logs in as a broker (`introduction`) that vouches for a client, and acts as that client
from then on.

It returns the root's messages as inputs: runs of deliveries, confirms and contents as the kernel's inward scanner finds
them, other methods decoded. Its owner writes all frames except heartbeats directly, and reports that with `wrote`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pandomq.cluster.introduction import Introduction, IntroductionStage
from pandomq.cluster.limits import LINK_MESSAGE_BYTES_MAX
from pandomq.cluster.vouching import TUNNEL_AGREED
from pandomq.errors import ConnectionFault
from pandomq.kernel import Content, DeliveryRun, Frame, ScanFault, Scanner, SettleRun
from pandomq.limits import FRAME_BYTES_MIN
from pandomq.methods import (
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionUnblocked,
    Method,
    MethodInput,
)
from pandomq.wire.codec import HEARTBEAT_FRAME, decode_method
from pandomq.wire.offer import Agreed
from pandomq.wire.pulse import NEVER_MS, next_beat_ms

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello


class Held(NamedTuple):
    """The root holds publishers back for this reason, or, if it is empty, no longer."""

    reason: str


class ClosedByRoot(NamedTuple):
    """The root has closed the tunnel, and has the close-ok; nothing follows."""

    reply_code: int
    reply_text: str
    class_id: int
    method_id: int


FromRoot = DeliveryRun | Content | SettleRun | MethodInput
TunnelInput = FromRoot | Held | ClosedByRoot


class TunnelEnd(Introduction):
    __slots__ = ("_closed", "_name", "_scanner")

    def __init__(self, key: bytes, own: Hello, vhost: str, now_ms: int) -> None:
        """The connection is established. `own` has a nonce that was drawn only for it, and names the client for which
        it vouches."""
        super().__init__(key, own, TUNNEL_AGREED, now_ms)
        self._name = vhost
        self._scanner: Scanner | None = None
        self._closed: ClosedByRoot | None = None
        """Set if the root refused the client in the handshake."""

    @property
    def let_in(self) -> bool:
        """The connection is open, or was."""
        return self._scanner is not None

    @property
    def due_ms(self) -> int:
        """The time at which the next `tick` is due, if it was just called, or the handshake has just begun."""
        match self.stage:
            case IntroductionStage.OPEN:
                return next_beat_ms(self.agreed.heartbeat_s, self._ticked_ms)
            case IntroductionStage.OVER:
                return NEVER_MS
            case _:
                return self._until_ms

    def receive(self, data: bytes | memoryview) -> list[TunnelInput]:
        """The inputs in these octets. Raises LinkRefused, after which there may still be something to send."""
        if self.stage is IntroductionStage.OVER:
            return []
        if self._scanner is not None:
            self._heard = True
            return self._scan(self._scanner, data)
        self._shake_hands(data)
        return self._take_held() if self._closed is None else [self._closed]

    def _take_held(self) -> list[TunnelInput]:
        """The octets right behind connection.open-ok."""
        if self._scanner is None:
            return []
        held, self._held = self._held, b""
        return self._scan(self._scanner, held)

    # The handshake.

    @property
    def _vhost(self) -> str:
        return self._name

    def _suits(self, offered: Agreed) -> Agreed:
        frame_max = min(offered.frame_max or TUNNEL_AGREED.frame_max, TUNNEL_AGREED.frame_max)
        if frame_max < FRAME_BYTES_MIN:
            raise self._end(f"the root accepts frames of at most {frame_max} bytes, which is too small")
        return Agreed(offered.channel_max, frame_max, offered.heartbeat_s or TUNNEL_AGREED.heartbeat_s)

    def _hear_method(self, method: Method) -> None:
        if isinstance(method, ConnectionClose):
            # The broker is not the root, or the root does not admit this client. The code distinguishes the two.
            self._closed = self._close_as_root_did(method)
        else:
            super()._hear_method(method)

    def _let_in(self) -> None:
        self._scanner = Scanner(self.agreed.frame_max, LINK_MESSAGE_BYTES_MAX, inward=True)
        self.stage = IntroductionStage.OPEN

    # The root's messages.

    def _scan(self, scanner: Scanner, data: bytes | memoryview) -> list[TunnelInput]:
        inputs: list[TunnelInput] = []
        for item in scanner.feed(data):
            match item:
                case Frame():
                    if item.kind != HEARTBEAT_FRAME and self.stage is IntroductionStage.OPEN:
                        self._hear(item, inputs)
                case ScanFault():
                    raise self._end(f"the root sent malformed content: {item.reply_text}", lasting=False)
                case _:
                    if self.stage is IntroductionStage.OPEN:
                        inputs.append(item)
        return inputs

    def _hear(self, frame: Frame, inputs: list[TunnelInput]) -> None:
        try:
            method = decode_method(frame.payload)
        except ConnectionFault as fault:
            raise self._end(f"the root sent a malformed method: {fault}", lasting=False) from None
        inputs.append(MethodInput(frame.channel, method) if frame.channel else self._hear_of_connection(method))

    def _hear_of_connection(self, method: Method) -> TunnelInput:
        match method:
            case ConnectionBlocked(reason):
                return Held(reason)
            case ConnectionUnblocked():
                return Held("")
            case ConnectionClose():
                return self._close_as_root_did(method)
            case _:
                raise self._end(f"the root sent {method.amqp_name}, which is not expected here")

    def _close_as_root_did(self, close: ConnectionClose) -> ClosedByRoot:
        self._send(ConnectionCloseOk())
        self.stage = IntroductionStage.OVER
        return ClosedByRoot(close.reply_code, close.reply_text, close.failed_class_id, close.failed_method_id)
