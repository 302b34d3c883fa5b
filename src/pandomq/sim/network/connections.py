"""A machine's connections, accepted and dialed: passes the events of simulated sockets to the node as the runtime does.

Requests of operators take the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from pandomq import limits
from pandomq.sim.agenda import Agenda
from pandomq.sim.disks.disk import SimDisk
from pandomq.sim.host import Host
from pandomq.sim.trace import WorldTrace

if TYPE_CHECKING:
    from pandomq.cluster.dialed_connection import Dialed
    from pandomq.node.log.replication import Replication
    from pandomq.node.node import Node
    from pandomq.sim.injection import Injection

P = ParamSpec("P")
T = TypeVar("T")


class Wire(Protocol):
    """The machine's end of a connection, from a client or to or from another broker."""

    link: Any
    """The node's state of the connection, a ClientLink or a Dialed; None if there is none yet."""

    def crashed(self, *, heard: bool) -> None:
        """The machine's end is gone; bytes that are under way arrive if `heard`, and are lost otherwise."""


class Connections(Host):
    node: Node | None
    injection: Injection | None = None
    """An exception that the broker will raise."""

    def __init__(
        self,
        name: str,
        agenda: Agenda,
        trace: WorldTrace,
        random: Random,
        disk: SimDisk,
        lives: Iterator[int],
        drift_permille: int,
    ) -> None:
        super().__init__(name, agenda, trace, random, disk, lives, drift_permille)
        self.cables: dict[Wire, None] = {}
        """The connections that the machine has accepted."""
        self._buffer = bytearray(limits.READ_CHUNK_BYTES)

    @property
    def accepting(self) -> bool:
        """Whether clients may connect, if only to be told which broker serves."""
        raise NotImplementedError

    def cluster_ms(self) -> int:
        """Returns the time of the broker's clock."""
        raise NotImplementedError

    def wake(self) -> None:
        """The node has new input; it takes a step soon."""
        raise NotImplementedError

    def enter(self, call: Callable[P, T]) -> Callable[P, T]:
        """Wraps the call of the node; an exception that is to be injected is raised inside of it."""
        return call if self.injection is None else self.injection.around(call)

    # The beginning of a connection.

    def connect(self, cable: Wire, port: int) -> None:
        assert self.node is not None and self.accepting
        self.cables[cable] = None
        cable.link = self.node.accept(cable, ("127.0.0.1", port), self.cluster_ms())
        self.wake()

    def dialed(self, dialed: Dialed) -> None:
        self._tell_node(lambda node: self.enter(node.dialed)(dialed, self.cluster_ms()))

    def not_dialed(self, dialed: Dialed, reason: str) -> None:
        self._tell_node(lambda node: self.enter(node.not_dialed)(dialed, reason, self.cluster_ms()))

    # The events of its socket.

    def received(self, wire: Wire, data: bytes) -> None:
        if self.node is None or wire.link is None:
            return
        self._trace.crossed(self._border, data)
        for start in range(0, len(data), len(self._buffer)):
            piece = data[start : start + len(self._buffer)]
            # There is one buffer for all reads, as in the runtime: if the node keeps a view without a copy, the next
            # read overwrites it.
            self._buffer[: len(piece)] = piece
            self.enter(self.node.receive)(wire.link, memoryview(self._buffer)[: len(piece)], self.cluster_ms())
        self.wake()

    def disconnected(self, wire: Wire) -> None:
        self.cables.pop(wire, None)
        if self.node is not None and wire.link is not None:
            self.enter(self.node.disconnected)(wire.link, self.cluster_ms())
            self.wake()

    def paused(self, wire: Wire) -> None:
        if self.node is not None and wire.link is not None:
            self.enter(self.node.pause)(wire.link)

    def resumed(self, wire: Wire) -> None:
        if self.node is not None and wire.link is not None:
            self.enter(self.node.resume)(wire.link)
            self.wake()

    # Operators.

    def ask(self, call: Callable[[Replication], None]) -> None:
        """Carries out an operator's request to the cluster."""
        self._tell_node(lambda node: self.enter(node.guard.tell)(call, node.peers))

    def _tell_node(self, call: Callable[[Node], None]) -> None:
        def tell() -> None:
            assert self.node is not None
            call(self.node)
            self.wake()

        self.in_life(tell)()
