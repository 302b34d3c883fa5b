"""A machine's side of its clients' connections: what sockets report is handed to the node, as the runtime does it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from pandomq import limits
from pandomq.sim.agenda import Agenda
from pandomq.sim.cable import Cable
from pandomq.sim.disk import SimDisk
from pandomq.sim.peer_side import PeerSide
from pandomq.sim.trace import Trace


class ClientSide(PeerSide):
    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: Trace,
        random: Random,
        disk: SimDisk,
        lives: Iterator[int],
        drift_permille: int,
    ) -> None:
        super().__init__(name, agenda, trace, random, disk, lives, drift_permille)
        self.cables: dict[Cable, None] = {}
        self._buffer = bytearray(limits.READ_CHUNK_BYTES)

    @property
    def accepting(self) -> bool:
        """Clients may come, if only to hear who serves."""
        raise NotImplementedError

    def connect(self, cable: Cable, port: int) -> None:
        assert self.node is not None and self.accepting
        self.cables[cable] = None
        cable.link = self.node.accept(cable, ("127.0.0.1", port), self.cluster_ms())
        self.wake()

    def received(self, cable: Cable, data: bytes) -> None:
        if self.node is None or cable.link is None:
            return
        self._trace.crossed(self._border, data)
        for start in range(0, len(data), len(self._buffer)):
            piece = data[start : start + len(self._buffer)]
            # One buffer for all reads, as in the runtime: what the node keeps of it without a copy, the next spoils.
            self._buffer[: len(piece)] = piece
            self.node.receive(cable.link, memoryview(self._buffer)[: len(piece)], self.cluster_ms())
        self.wake()

    def lost(self, cable: Cable) -> None:
        self.cables.pop(cable, None)
        if self.node is not None and cable.link is not None:
            self.node.lost(cable.link, self.cluster_ms())
            self.wake()

    def paused(self, cable: Cable) -> None:
        if self.node is not None and cable.link is not None:
            self.node.pause(cable.link)

    def resumed(self, cable: Cable) -> None:
        if self.node is not None and cable.link is not None:
            self.node.resume(cable.link)
            self.wake()
