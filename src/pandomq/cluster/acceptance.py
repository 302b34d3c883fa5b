"""The accepting end of a link, from the hello to the proof of the broker that dialed.

    hello ─▶ welcome, with a hello and a proof of this broker ─▶ its proof ─▶ accepted

Any step may end in an objection, which is sent to the other end; both ends log it. A broker that has proven nothing
learns only the names, versions and addresses of a hello.
"""

from __future__ import annotations

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
from pandomq.cluster.proof import Side, is_proven, prove


class NotAccepted(Exception):
    """The connection does not become a link. `answer` is to be sent to the other end, unless it can receive nothing."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.answer = answer


class Acceptance:
    __slots__ = ("_key", "_own_data", "_their_data", "own", "theirs")

    def __init__(self, key: bytes, own: Hello) -> None:
        """`own` has a nonce that was drawn only for this connection."""
        self._key = key
        self.own = own
        self._own_data = encode(own)
        self._their_data = b""
        self.theirs: Hello | None = None
        """The hello of the other end; trusted only once the other end has proven it."""

    def greet(self, data: bytes) -> bytes:
        """The challenge for the sender of this hello. Raises NotAccepted."""
        try:
            self.theirs = decode_hello(data)
        except BadHello as bad:
            raise NotAccepted(str(bad)) from None
        reason = objection(self.theirs, self.own)
        if reason is not None:
            raise NotAccepted(reason, encode(Objection(reason)))
        self._their_data = data
        return encode(Welcome(self._own_data, prove(self._key, Side.DIALED, data, self._own_data)))

    def accept(self, data: bytes) -> Hello:
        """The identity that this answer to the challenge proves. Raises NotAccepted."""
        assert self.theirs is not None
        try:
            answer = decode_answer(data)
        except BadHello as bad:
            raise NotAccepted(str(bad)) from None
        if isinstance(answer, Objection):
            raise NotAccepted(answer.reason)
        if not isinstance(answer, Proven) or not is_proven(
            answer.proof, self._key, Side.DIALING, self._their_data, self._own_data
        ):
            raise NotAccepted(f"{self.theirs.name} has not proven that it knows the key of this cluster")
        return self.theirs
