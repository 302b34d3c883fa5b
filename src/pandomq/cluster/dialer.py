"""The dialing end of a link: an AMQP client that logs in as a broker, opens one channel, and publishes.

    STARTING ─ start ─▶ SECURING ─ secure ─▶ TUNING ─ tune ─▶ OPENING ─ open-ok, channel.open-ok ─▶ OPEN ─▶ OVER

Octets in, octets out. The other end proves itself first; only then does this one. Nothing but heartbeats and a close is
expected afterwards. `LinkRefused` says why there is no link, or none any more; its text is for people.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from pandomq.cluster.hello import (
    BadHello,
    Hello,
    Objection,
    Proven,
    Welcome,
    decode_answer,
    decode_hello,
    encode,
    objection,
)
from pandomq.cluster.limits import DIAL_MS_MAX, LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S
from pandomq.cluster.parcels import CHANNEL
from pandomq.cluster.proof import Side, is_proven, prove
from pandomq.errors import ConnectionFault
from pandomq.kernel import Frame, ScanFault, Scanner
from pandomq.limits import HANDSHAKE_FRAME_BYTES_MAX, REPLY_TEXT_BYTES_MAX
from pandomq.methods import (
    ChannelOpen,
    ChannelOpenOk,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
)
from pandomq.wire.codec import HEARTBEAT, HEARTBEAT_FRAME, decode_method, encode_frame
from pandomq.wire.handshake import PROTOCOL_HEADER
from pandomq.wire.pulse import Pulse, Tick
from pandomq.wire.sasl import CLUSTER

if TYPE_CHECKING:
    from pandomq.methods import Method


GOOD_BYE: Final = "it says good-bye: "
"""With which a broker is quoted that goes for a reason."""
_SUCCESS: Final = 200


class Stage(Enum):
    STARTING = auto()
    SECURING = auto()
    TUNING = auto()
    OPENING = auto()
    OPEN = auto()
    OVER = auto()


class LinkRefused(Exception):
    """By either end; or what the other end says makes no sense."""

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        """`lasting`: trying again soon will not help."""
        super().__init__(reason)
        self.reason = reason
        self.lasting = lasting


class Dialer(Pulse):
    __slots__ = ("_data", "_key", "_out", "_scanner", "_until_ms", "own", "stage", "theirs")

    def __init__(self, key: bytes, own: Hello, now_ms: int) -> None:
        """The connection is there. `own` has a nonce that was drawn for it alone."""
        self._key = key
        self.own = own
        self._data = encode(own)
        self.theirs: Hello | None = None
        """Once it is proven."""
        self.stage = Stage.STARTING
        self._scanner = Scanner(HANDSHAKE_FRAME_BYTES_MAX, 0)
        self._out: list[bytes] = [PROTOCOL_HEADER]
        self._until_ms = now_ms + DIAL_MS_MAX
        self._begin_pulse(now_ms)

    def data_to_send(self) -> bytes:
        data = b"".join(self._out)
        self._out.clear()
        return data

    def receive(self, data: bytes | memoryview) -> None:
        """Raises LinkRefused, after which there may still be something to send."""
        self._heard = True
        for item in self._scanner.feed(data):
            if isinstance(item, ScanFault) or not isinstance(item, Frame):
                raise self._end("what answers there is not a broker of this kind")
            if item.kind != HEARTBEAT_FRAME:
                self._hear(item)

    def tick(self, now_ms: int) -> None:
        """Raises LinkRefused if the other end is silent for too long."""
        if self.stage is not Stage.OPEN:
            if now_ms >= self._until_ms:
                raise self._end("it did not finish the handshake in time", lasting=False)
            return
        asked = self._beat(LINK_HEARTBEAT_S, now_ms)
        if asked is Tick.DROP:
            raise self._end("no sign of life from it for two heartbeats", lasting=False)
        if asked is Tick.SEND:
            self._out.append(HEARTBEAT)

    def close(self, reason: str) -> None:
        """Says good-bye, if it was welcome."""
        if self.stage is Stage.OPEN:
            text = reason.encode()[:REPLY_TEXT_BYTES_MAX].decode(errors="ignore")
            self._send(ConnectionClose(_SUCCESS, text, 0, 0))
        self.stage = Stage.OVER

    def _end(self, reason: str, *, lasting: bool = True) -> LinkRefused:
        self.stage = Stage.OVER
        return LinkRefused(reason, lasting=lasting)

    def _send(self, method: Method, channel: int = 0) -> None:
        self._out.append(encode_frame(channel, method))

    def _hear(self, frame: Frame) -> None:
        if self.stage is Stage.OVER:
            return
        try:
            method = decode_method(frame.payload)
        except ConnectionFault as fault:
            raise self._end(f"it said what cannot be read: {fault}") from None
        match self.stage, method:
            case _, ConnectionClose(_, reply_text):
                self._send(ConnectionCloseOk())
                raise self._end(f"{GOOD_BYE}{reply_text}", lasting=False)
            case Stage.STARTING, ConnectionStart():
                self._start(method)
            case Stage.SECURING, ConnectionSecure(challenge):
                self._secure(challenge)
            case Stage.SECURING, ConnectionTune():
                raise self._end("it let this broker in without a proof of its own")
            case Stage.TUNING, ConnectionSecure(challenge):
                # The proof was good, and there is something else.
                raise self._objected(challenge)
            case Stage.TUNING, ConnectionTune():
                self._tune(method)
            case Stage.OPENING, ConnectionOpenOk():
                self._send(ChannelOpen(), CHANNEL)
            case Stage.OPENING, ChannelOpenOk():
                self.stage = Stage.OPEN
            case _:
                raise self._end(f"it said {method.amqp_name}, which has no place there")

    def _start(self, start: ConnectionStart) -> None:
        if CLUSTER.encode() not in start.mechanisms.split():
            raise self._end("it takes no other brokers at this address: it has no cluster key, or takes them elsewhere")
        properties = {"product": "PandoMQ", "version": self.own.version, "connection_name": self.own.name}
        self._send(ConnectionStartOk(properties, CLUSTER, self._data, "en_US"))
        self.stage = Stage.SECURING

    def _secure(self, challenge: bytes) -> None:
        try:
            answer = decode_answer(challenge)
            if not isinstance(answer, Welcome):
                raise self._objected(challenge)
            theirs = decode_hello(answer.hello)
        except BadHello as bad:
            raise self._end(str(bad)) from None
        reason = objection(self.own, theirs)
        if not is_proven(answer.proof, self._key, Side.DIALED, self._data, answer.hello):
            # Said first: nothing else that it says is to be believed.
            reason = f"{self.own.name} and {theirs.name} have different cluster keys"
        if reason is not None:
            self._send(ConnectionSecureOk(encode(Objection(reason))))
            raise self._end(reason)
        self.theirs = theirs
        proof = prove(self._key, Side.DIALING, self._data, answer.hello)
        self._send(ConnectionSecureOk(encode(Proven(proof))))
        self.stage = Stage.TUNING

    def _objected(self, challenge: bytes) -> LinkRefused:
        try:
            answer = decode_answer(challenge)
        except BadHello as bad:
            return self._end(str(bad))
        if isinstance(answer, Objection):
            return self._end(answer.reason, lasting=answer.lasting)
        return self._end("it asks for a proof that makes no sense")

    def _tune(self, tune: ConnectionTune) -> None:
        if tune.frame_max and tune.frame_max < LINK_FRAME_BYTES_MAX:
            raise self._end(f"it takes frames of {tune.frame_max} bytes only")
        self._send(ConnectionTuneOk(CHANNEL, LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S))
        self._send(ConnectionOpen("/"))
        self.stage = Stage.OPENING
