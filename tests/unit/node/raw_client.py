"""A client of one broker of a `LinkWorld`, spoken by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.kernel import Content, DeliveryRun, Frame, Scanner, SettleRun
from pandomq.methods import (
    BasicPublish,
    ChannelOpen,
    ConnectionOpen,
    ConnectionStartOk,
    ConnectionTuneOk,
    Method,
    MethodInput,
)
from pandomq.properties import Properties, encode_header
from pandomq.wire.codec import HEARTBEAT_FRAME, decode_method, encode_content, encode_frame
from pandomq.wire.handshake import PROTOCOL_HEADER

if TYPE_CHECKING:
    from tests.unit.node.link_world import LinkWorld

Heard = DeliveryRun | Content | SettleRun | MethodInput


class RawClient:
    def __init__(self, world: LinkWorld, broker: str, user: str = "guest") -> None:
        """Logged in, with channel 1 open. The password is the user's name."""
        self.heard: list[Heard] = []
        self._world = world
        self._scanner = Scanner(131_072, 1 << 20, inward=True)
        self._socket = world.connect(world.machines[broker])
        self._socket.take = self._take  # type: ignore[method-assign]
        self._socket.write(PROTOCOL_HEADER)
        self.say(ConnectionStartOk({}, "PLAIN", f"\0{user}\0{user}".encode(), "en_US"), 0)
        self.say(ConnectionTuneOk(2047, 131_072, 0), 0)
        self.say(ConnectionOpen("/"), 0)
        self.say(ChannelOpen())

    def say(self, method: Method, channel: int = 1) -> list[Heard]:
        """Sends the method; returns the methods that arrive soon after it."""
        return self.write(encode_frame(channel, method))

    def write_later(self, method: Method, channel: int = 1) -> None:
        """Without waiting for anything."""
        self.heard.clear()
        self._socket.write(encode_frame(channel, method))

    def publish(self, exchange: str, key: str, body: bytes) -> list[Heard]:
        header = encode_header(len(body), Properties(delivery_mode=2))
        return self.write(encode_content(1, BasicPublish(exchange, key), header, body, 131_072))

    def write(self, octets: bytes, wait_ms: int = 100) -> list[Heard]:
        self.heard.clear()
        self._socket.write(octets)
        self._world.run(wait_ms)
        return list(self.heard)

    def listen(self, wait_ms: int) -> list[Heard]:
        self.heard.clear()
        self._world.run(wait_ms)
        return list(self.heard)

    def hang_up(self) -> None:
        self._socket.close()
        self._world.run(20)

    @property
    def open(self) -> bool:
        return self._socket.open

    def _take(self, data: bytes) -> None:
        for item in self._scanner.feed(data):
            if not isinstance(item, Frame):
                assert isinstance(item, DeliveryRun | Content | SettleRun)
                self.heard.append(item)
            elif item.kind != HEARTBEAT_FRAME:
                self.heard.append(MethodInput(item.channel, decode_method(item.payload)))
