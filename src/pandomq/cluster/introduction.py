"""How a broker logs in at another one: the dialing end of a connection, up to connection.open-ok.

    STARTING ─ start ─▶ SECURING ─ secure ─▶ TUNING ─ tune ─▶ OPENING ─ open-ok ─▶ (the subclass) ─▶ OPEN ─▶ OVER

Octets in, octets out. The other end proves itself first; only then does this one. Subclasses define the further use of
the connection: a link publishes (`dialer`), a tunnel is a client like others (`tunnel_end`). `LinkRefused` contains the
reason why there is no connection, or none any more; its text is for people.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from pandomq.cluster.hello import (
    LINK,
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
from pandomq.cluster.limits import DIAL_MS_MAX
from pandomq.cluster.proof import Side, is_proven, prove
from pandomq.errors import ConnectionFault
from pandomq.limits import REPLY_TEXT_BYTES_MAX
from pandomq.methods import (
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
from pandomq.wire.codec import HEARTBEAT, decode_method, encode_frame
from pandomq.wire.handshake import PROTOCOL_HEADER, next_method
from pandomq.wire.offer import Agreed
from pandomq.wire.pulse import Pulse, Tick
from pandomq.wire.sasl import CLUSTER

if TYPE_CHECKING:
    from pandomq.methods import Method


CLOSED_WITH_REASON: Final = "the peer closed with a reason: "
"""A prefix for the reason with which a broker closed the link."""
_SUCCESS: Final = 200


class IntroductionStage(Enum):
    STARTING = auto()
    SECURING = auto()
    TUNING = auto()
    OPENING = auto()
    OPEN = auto()
    OVER = auto()


class LinkRefused(Exception):
    """Rejected by either end; or the other end's octets are malformed."""

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        """`lasting`: another attempt soon will not help."""
        super().__init__(reason)
        self.reason = reason
        self.lasting = lasting


class Introduction(Pulse):
    __slots__ = ("_data", "_held", "_key", "_out", "_until_ms", "agreed", "own", "stage", "theirs")

    def __init__(self, key: bytes, own: Hello, wanted: Agreed, now_ms: int) -> None:
        """The connection is established. `own` has a nonce that was drawn only for it; `wanted` are the requested
        limits, of which the other end may offer less."""
        self._key = key
        self.own = own
        self._data = encode(own)
        self.theirs: Hello | None = None
        """The hello of the other end, once it is proven."""
        self.agreed = wanted
        self.stage = IntroductionStage.STARTING
        self._held = b""
        self._out: list[bytes] = [PROTOCOL_HEADER]
        self._until_ms = now_ms + DIAL_MS_MAX
        self._begin_pulse(now_ms)

    # For subclasses.

    @property
    def _vhost(self) -> str:
        raise NotImplementedError

    def _suits(self, offered: Agreed) -> Agreed:
        """The answer to this offer. Raises LinkRefused."""
        raise NotImplementedError

    def _let_in(self) -> None:
        """connection.open-ok has arrived; the octets in `_held` came after it, and the subclass handles everything
        else."""
        raise NotImplementedError

    # Octets.

    def data_to_send(self) -> bytes:
        data = b"".join(self._out)
        self._out.clear()
        return data

    def _shake_hands(self, data: bytes | memoryview) -> None:
        """Raises LinkRefused, after which there may still be something to send."""
        self._heard = True
        self._held += data
        while self._is_outside:
            try:
                payload, end = next_method(self._held)
                if not end:
                    return
                self._held = self._held[end:]
                if payload is not None:
                    self._hear_method(decode_method(payload))
            except ConnectionFault as fault:
                raise self._end(f"the server at that address is not a PandoMQ broker: {fault}") from None

    @property
    def _is_outside(self) -> bool:
        return self.stage not in (IntroductionStage.OPEN, IntroductionStage.OVER)

    def tick(self, now_ms: int) -> None:
        """Raises LinkRefused if the other end is silent for too long."""
        if self.stage is not IntroductionStage.OPEN:
            if now_ms >= self._until_ms:
                raise self._end("the peer did not finish the handshake in time", lasting=False)
            return
        asked = self._beat(self.agreed.heartbeat_s, now_ms)
        if asked is Tick.DROP:
            raise self._end("nothing was received from the peer for two heartbeat intervals", lasting=False)
        if asked is Tick.SEND:
            self._out.append(HEARTBEAT)

    def close(self, reason: str) -> None:
        """Sends a close, if the connection was accepted."""
        if self.stage is IntroductionStage.OPEN:
            text = reason.encode()[:REPLY_TEXT_BYTES_MAX].decode(errors="ignore")
            self._send(ConnectionClose(_SUCCESS, text, 0, 0))
        self.stage = IntroductionStage.OVER

    def _end(self, reason: str, *, lasting: bool = True) -> LinkRefused:
        self.stage = IntroductionStage.OVER
        return LinkRefused(reason, lasting=lasting)

    def _send(self, method: Method, channel: int = 0) -> None:
        self._out.append(encode_frame(channel, method))

    # The handshake.

    def _hear_method(self, method: Method) -> None:
        match self.stage, method:
            case _, ConnectionClose(_, reply_text):
                self._send(ConnectionCloseOk())
                raise self._end(f"{CLOSED_WITH_REASON}{reply_text}", lasting=False)
            case IntroductionStage.STARTING, ConnectionStart():
                self._start(method)
            case IntroductionStage.SECURING, ConnectionSecure(challenge):
                self._secure(challenge)
            case IntroductionStage.SECURING, ConnectionTune():
                raise self._end("the peer accepted this broker without proving its own key")
            case IntroductionStage.TUNING, ConnectionSecure(challenge):
                # The proof was right, but there is another objection.
                raise self._objected(challenge)
            case IntroductionStage.TUNING, ConnectionTune(channel_max, frame_max, heartbeat):
                self.agreed = self._suits(Agreed(channel_max, frame_max, heartbeat))
                self._send(ConnectionTuneOk(*self.agreed))
                self._send(ConnectionOpen(self._vhost))
                self.stage = IntroductionStage.OPENING
            case IntroductionStage.OPENING, ConnectionOpenOk():
                self._let_in()
            case _:
                raise self._end(f"the peer sent {method.amqp_name}, which is not expected here")

    def _start(self, start: ConnectionStart) -> None:
        if CLUSTER.encode() not in start.mechanisms.split():
            raise self._end(
                "the peer accepts no brokers at this address: it has no cluster key, or listens for brokers elsewhere"
            )
        properties: dict[str, object] = {
            "product": "PandoMQ",
            "version": self.own.version,
            "connection_name": self.own.name,
        }
        if self.own.purpose != LINK:
            # Links are never blocked.
            properties["capabilities"] = {"connection.blocked": True}
        self._send(ConnectionStartOk(properties, CLUSTER, self._data, "en_US"))
        self.stage = IntroductionStage.SECURING

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
            # This reason replaces any other: without the proof nothing else in the message can be trusted.
            reason = f"{self.own.name} and {theirs.name} have different cluster keys"
        if reason is not None:
            self._send(ConnectionSecureOk(encode(Objection(reason))))
            raise self._end(reason)
        self.theirs = theirs
        proof = prove(self._key, Side.DIALING, self._data, answer.hello)
        self._send(ConnectionSecureOk(encode(Proven(proof))))
        self.stage = IntroductionStage.TUNING

    def _objected(self, challenge: bytes) -> LinkRefused:
        try:
            answer = decode_answer(challenge)
        except BadHello as bad:
            return self._end(str(bad))
        if isinstance(answer, Objection):
            return self._end(answer.reason, lasting=answer.lasting)
        return self._end("the peer's challenge is malformed")
