"""One broker that dialed this one, from its hello to its proof.

    hello ─▶ welcome, with a hello and a proof of ours ─▶ its proof ─▶ accepted

Any step may end in an objection, which the other end is told; both ends write it to their logs. Who has proven nothing
learns no more than the names, versions and addresses of a hello.
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
    """There will be no link. `answer` is what the other end is to hear, if it can still hear anything."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.answer = answer


class Acceptance:
    __slots__ = ("_key", "_own_data", "_their_data", "own", "theirs")

    def __init__(self, key: bytes, own: Hello) -> None:
        """`own` has a nonce that was drawn for this connection alone."""
        self._key = key
        self.own = own
        self._own_data = encode(own)
        self._their_data = b""
        self.theirs: Hello | None = None
        """As it says; to be believed once it is proven."""

    def greet(self, data: bytes) -> bytes:
        """The challenge for who said this hello. Raises NotAccepted."""
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
        """Who it is, proven by this answer to the challenge. Raises NotAccepted."""
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
            raise NotAccepted(f"{self.theirs.name} has not proven that it has the key of this cluster")
        return self.theirs
