"""A machine's side of what goes on between brokers: messages, or connections that they dial, and what people ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq import limits
from pandomq.sim.host import Host

if TYPE_CHECKING:
    from pandomq.node.dialed import Dialed, DialedOwner
    from pandomq.node.node import Node
    from pandomq.node.replication import Replication


class PeerSide(Host):
    node: Node | None

    def note_told(self) -> int:
        """The node is about to be told this time."""
        raise NotImplementedError

    def cluster_ms(self) -> int:
        """What the broker's clock says."""
        raise NotImplementedError

    def wake(self) -> None:
        """Somebody has given the node work."""
        raise NotImplementedError

    # Messages.

    def linked(self, peer: str) -> None:
        self._tell_node(lambda node: node.peer_connected(peer))

    def unlinked(self, peer: str, *, by_peer: bool) -> None:
        self._tell_node(lambda node: node.peer_lost(peer, by_peer=by_peer))

    def delivered(self, peer: str, data: bytes) -> None:
        def take(node: Node) -> None:
            self._trace.crossed(self._border, data)
            node.peer_received(peer, data, self.note_told())

        self._tell_node(take)

    # Connections that it dialed.

    def dialed(self, dialed: Dialed) -> None:
        self._tell_owner(dialed, lambda owner: owner.dialed(dialed, self.cluster_ms()))

    def not_dialed(self, dialed: Dialed, reason: str) -> None:
        self._tell_owner(dialed, lambda owner: owner.not_dialed(dialed, reason, self.cluster_ms()))

    def dialed_received(self, dialed: Dialed, data: bytes) -> None:
        def take(owner: DialedOwner) -> None:
            self._trace.crossed(self._border, data)
            for start in range(0, len(data), limits.READ_CHUNK_BYTES):
                # Of a buffer that is used again nothing may be kept.
                piece = bytearray(data[start : start + limits.READ_CHUNK_BYTES])
                owner.receive(dialed, memoryview(piece), self.cluster_ms())
                piece[:] = bytes(len(piece))

        self._tell_owner(dialed, take)

    def dialed_resumed(self, dialed: Dialed) -> None:
        self._tell_owner(dialed, lambda owner: owner.resume(dialed))

    def dialed_lost(self, dialed: Dialed) -> None:
        self._tell_owner(dialed, lambda owner: owner.lost(dialed, self.cluster_ms()))

    def _tell_owner(self, dialed: Dialed, call: Callable[[DialedOwner], None]) -> None:
        def tell(_: Node) -> None:
            if not dialed.gone:
                call(dialed.owner)

        self._tell_node(tell)

    # People.

    def ask(self, call: Callable[[Replication], None]) -> None:
        """What a person wants of the cluster."""
        self._tell_node(lambda node: call(node.peers))

    def _tell_node(self, call: Callable[[Node], None]) -> None:
        def tell() -> None:
            assert self.node is not None
            call(self.node)
            self.wake()

        self.in_life(tell)()
