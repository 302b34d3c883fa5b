"""Connections that go through another broker, until they are established: then they are their owner's, like any other.

The owner makes a `Dialed` with the address of the relaying broker, calls `begin` here, and dials it. The owner gets the
same reports as if it had dialed the broker beyond: `dialed` once there is a path to it, or `not_dialed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.cluster.dialed_connection import CLOSED_BY_PEER
from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.passage import Passage, ask_for_passage

if TYPE_CHECKING:
    from pandomq.cluster.dialed_connection import Dialed, DialedOwner
    from pandomq.cluster.hello import Hello
    from pandomq.node.output import Writes


class _Asking:
    __slots__ = ("beyond", "owner", "passage")

    def __init__(self, owner: DialedOwner, beyond: str) -> None:
        self.owner = owner
        self.beyond = beyond
        self.passage: Passage | None = None
        """The passage, once there is a connection."""


class Passages:
    __slots__ = ("_asking", "_key", "_make_hello", "_talking")

    def __init__(self, key: bytes, make_hello: Callable[[str], Hello]) -> None:
        self._key = key
        self._make_hello = make_hello
        self._asking: dict[Dialed, _Asking] = {}
        self._talking: dict[Dialed, None] = {}

    def __len__(self) -> int:
        return len(self._asking)

    def begin(self, dialed: Dialed, beyond: str) -> None:
        """The connection is about to be dialed, and is to lead to this broker."""
        self._asking[dialed] = _Asking(dialed.owner, beyond)
        dialed.owner = self

    def tick(self, now_ms: int) -> None:
        """To be called several times per second."""
        for dialed, asking in list(self._asking.items()):
            if dialed.gone:
                del self._asking[dialed]
            elif asking.passage is not None:
                try:
                    asking.passage.tick(now_ms)
                except LinkRefused as refused:
                    self.not_dialed(dialed, refused.reason, now_ms)

    # Events of the connections.

    def dialed(self, dialed: Dialed, now_ms: int) -> None:
        asking = self._asking[dialed]
        hello = ask_for_passage(self._make_hello(dialed.through), asking.beyond)
        asking.passage = Passage(self._key, hello, now_ms)
        self._talking[dialed] = None

    def not_dialed(self, dialed: Dialed, reason: str, now_ms: int) -> None:
        """To be called when the relay was not dialed, or when it was dialed and refused the passage."""
        self._give_back(dialed).not_dialed(dialed, f"{reason} (through {dialed.through})", now_ms)

    def receive(self, dialed: Dialed, data: memoryview, now_ms: int) -> None:
        passage = self._asking[dialed].passage
        assert passage is not None
        self._talking[dialed] = None
        try:
            is_open = passage.receive(data)
        except LinkRefused as refused:
            self.not_dialed(dialed, refused.reason, now_ms)
            return
        if is_open:
            owner = self._give_back(dialed)
            owner.dialed(dialed, now_ms)
            rest = passage.take_rest()
            if rest and not dialed.gone:
                owner.receive(dialed, memoryview(rest), now_ms)

    def resume(self, dialed: Dialed) -> None:
        dialed.writing_paused = False

    def disconnected(self, dialed: Dialed, now_ms: int) -> None:
        self.not_dialed(dialed, CLOSED_BY_PEER, now_ms)

    def _give_back(self, dialed: Dialed) -> DialedOwner:
        self._talking.pop(dialed, None)
        dialed.owner = self._asking.pop(dialed).owner
        return dialed.owner

    # Output.

    def take_writes(self, writes: Writes) -> None:
        for dialed in self._talking:
            asking = self._asking.get(dialed)
            data = b"" if dialed.gone or asking is None or asking.passage is None else asking.passage.data_to_send()
            if data:
                writes.append((dialed, data))
        self._talking.clear()
