"""How a broker gets to one that it does not reach: another one passes on what it says; and how it tries the direct way.

A *passage* is asked for as everything is asked for between brokers (`introduction`); the hello says whom it is to lead
to. connection.tune says that it is open: there is a connection to who is beyond, and what follows is for that one,
octet for octet, in both directions. So they shake hands as if nobody stood between them.

A *knock* goes no further than the other end's proof that it is there.
"""

from __future__ import annotations

import msgspec

from pandomq.cluster.hello import PASSAGE, Hello
from pandomq.cluster.introduction import Introduction, Stage
from pandomq.cluster.vouching import TUNNEL_AGREED
from pandomq.methods import ConnectionTune, Method


def ask_for_passage(hello: Hello, beyond: str) -> Hello:
    """A hello for a passage, from one for a link with who is asked for it."""
    return msgspec.structs.replace(hello, members=(), purpose=PASSAGE, beyond=beyond)


class Passage(Introduction):
    __slots__ = ()

    def __init__(self, key: bytes, own: Hello, now_ms: int) -> None:
        super().__init__(key, own, TUNNEL_AGREED, now_ms)

    def receive(self, data: bytes | memoryview) -> bool:
        """Whether it is open now. Raises LinkRefused, after which there may still be something to send."""
        self._shake_hands(data)
        return self.stage is Stage.OPEN

    def take_rest(self) -> bytes:
        """What came from beyond right after it was opened."""
        rest, self._held = self._held, b""
        return rest

    def _hear_method(self, method: Method) -> None:
        if self.stage is Stage.TUNING and isinstance(method, ConnectionTune):
            self.stage = Stage.OPEN
        else:
            super()._hear_method(method)


class Knock(Introduction):
    __slots__ = ()

    def __init__(self, key: bytes, own: Hello, now_ms: int) -> None:
        super().__init__(key, own, TUNNEL_AGREED, now_ms)

    def receive(self, data: bytes | memoryview) -> bool:
        """Whether the other end has proven who it is: then nothing more is to be said. Raises LinkRefused."""
        self._shake_hands(data)
        return self.stage is Stage.TUNING
