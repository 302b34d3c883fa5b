"""A tunnel to one broker of a `LinkWorld`, spoken by hand: what the front of another broker would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.tunnel_end import TunnelEnd, TunnelInput
from pandomq.cluster.vouching import vouch
from pandomq.fieldtable import encode_table
from pandomq.wire.codec import encode_frame

if TYPE_CHECKING:
    from pandomq.methods import Method
    from tests.unit.node.link_world import LinkWorld

PEER = "10.1.1.1:4000 -> 10.1.1.2:5672"


class RawTunnel:
    def __init__(
        self,
        world: LinkWorld,
        origin: str,
        root: str,
        *,
        user: str = "guest",
        purpose: str = "tunnel",
        vhost: str = "/",
    ) -> None:
        """Dialed by one broker to another, or to itself."""
        peers = world.node(origin).peer_links
        assert peers is not None
        hello = vouch(
            peers.hello(root), purpose=purpose, user=user, peer=PEER, properties=encode_table({"product": "a test"})
        )
        self.end = TunnelEnd(peers.key, hello, vhost, world.now_ms)
        self.heard: list[TunnelInput] = []
        self.refused: LinkRefused | None = None
        self._world = world
        self._socket = world.connect(world.machines[root])
        self._socket.take = self._take  # type: ignore[method-assign]
        self._write()
        world.run(20)

    def say(self, method: Method, channel: int = 1) -> list[TunnelInput]:
        """Sends the method; returns the methods that arrive soon after it."""
        return self.write(encode_frame(channel, method))

    def write(self, octets: bytes) -> list[TunnelInput]:
        self.heard.clear()
        self._socket.write(octets)
        self._world.run(100)
        return list(self.heard)

    def hang_up(self) -> None:
        self._socket.close()
        self._world.run(20)

    def _take(self, data: bytes) -> None:
        try:
            self.heard += self.end.receive(data)
        except LinkRefused as refused:
            self.refused = refused
        self._write()

    def _write(self) -> None:
        data = self.end.data_to_send()
        if data:
            self._socket.write(data)
