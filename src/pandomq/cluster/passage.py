"""How a broker connects to one that it cannot reach directly: another one relays its messages; and how it tries the
direct connection again.

A *passage* is requested like any connection between brokers (`introduction`); the hello names the broker at its other
end. connection.tune reports that it is open: there is a connection to that broker, and all further octets are relayed
unchanged in both directions. So the two perform their handshake as on a direct connection.

A *knock* ends with the other end's proof that it is there.
"""

from __future__ import annotations

import msgspec

from pandomq.cluster.hello import PASSAGE, Hello
from pandomq.cluster.introduction import Introduction, IntroductionStage
from pandomq.cluster.vouching import TUNNEL_AGREED
from pandomq.methods import ConnectionTune, Method


def ask_for_passage(hello: Hello, beyond: str) -> Hello:
    """A hello for a passage, from one for a link with the relaying broker."""
    return msgspec.structs.replace(hello, members=(), purpose=PASSAGE, beyond=beyond)


class Passage(Introduction):
    __slots__ = ()

    def __init__(self, key: bytes, own: Hello, now_ms: int) -> None:
        super().__init__(key, own, TUNNEL_AGREED, now_ms)

    def receive(self, data: bytes | memoryview) -> bool:
        """Returns whether it is open now. Raises LinkRefused, after which there may still be something to send."""
        self._shake_hands(data)
        return self.stage is IntroductionStage.OPEN

    def take_rest(self) -> bytes:
        """Octets from the other end that arrived right after it was opened."""
        rest, self._held = self._held, b""
        return rest

    def _hear_method(self, method: Method) -> None:
        if self.stage is IntroductionStage.TUNING and isinstance(method, ConnectionTune):
            self.stage = IntroductionStage.OPEN
        else:
            super()._hear_method(method)


class Knock(Introduction):
    __slots__ = ()

    def __init__(self, key: bytes, own: Hello, now_ms: int) -> None:
        super().__init__(key, own, TUNNEL_AGREED, now_ms)

    def receive(self, data: bytes | memoryview) -> bool:
        """Whether the other end has proven its identity: then nothing more is to be sent. Raises LinkRefused."""
        self._shake_hands(data)
        return self.stage is IntroductionStage.TUNING
