"""Reads a stream by offset: from its beginning, from its last position, or from its end, on any broker.

Its deliveries on one connection have no gaps, even if the root changes behind that connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicQos,
    BasicQosOk,
    Method,
    QueueDeclareOk,
)
from pandomq.properties import read_headers
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.ledger import BrokenPromise

if TYPE_CHECKING:
    from pandomq.sim.checkers.streams import StreamsKept
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene

OFFSET: Final = "x-stream-offset"
PREFETCH_MAX: Final = 100
DENSE: Final = "a stream has no gaps"


class StreamConsumer(SimulatedClient):
    def __init__(self, scene: Scene, name: str, kind: QueueKind, checker: StreamsKept) -> None:
        super().__init__(scene, name)
        self.subscribes = True
        self._kind = kind
        self._checker = checker
        self._prefetch = self.random.choice((1, 7, PREFETCH_MAX))
        self._think_ms = self.random.choice((0, 3, 30))
        self._expected: int | None = 0
        """The offset that has to come next; None for any."""
        self.next_offset = 0
        """The offset after the last one that it has read."""
        self._unacked: list[int] = []

    def _start(self) -> str | int:
        """Returns where it begins to read."""
        start: str | int = self.random.choice(("first", "next", "last", self.next_offset, self.next_offset))
        self._expected = None if start in ("next", "last") else 0 if start == "first" else self.next_offset
        return start

    @property
    def content(self) -> bool:
        """Whether it has the whole stream; true if it began at the end."""
        return self._expected is None or self._expected >= self._checker.end_of(self._kind.name, self.scene.machines)

    def end_wish(self) -> None:
        """A slow reader would need many seconds for the whole stream, so it becomes fast."""
        self._think_ms = 0

    def opened(self) -> None:
        self._unacked = []
        self.declare(self._kind)
        consume = BasicConsume(self._kind.name, self._kind.name, arguments={OFFSET: self._start()})
        self.send(BasicQos(prefetch_count=self._prefetch), consume)

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicDeliver(_, tag):
                self._take(tag, body)
            case QueueDeclareOk() | BasicQosOk() | BasicConsumeOk():
                pass
            case _:
                raise self.unexpected(method)

    def _take(self, tag: int, body: bytes) -> None:
        offset = read_headers(self.header).get(OFFSET)
        if not isinstance(offset, int):
            raise BrokenPromise("legal requests are served", f"{self.name} was sent something without an offset")
        if self._expected is not None and (offset < self._expected or (self._kind.keeps and offset > self._expected)):
            raise BrokenPromise(
                DENSE, f"{self.name} was sent offset {offset} of {self._kind.name}, not {self._expected}"
            )
        self._expected = self.next_offset = offset + 1
        self._checker.read(self._kind.name, offset, self.scene.ledger.message_of(body))
        self._unacked.append(tag)
        if len(self._unacked) == 1:
            cable = self.cable
            self.scene.agenda.after(self.random.randint(0, self._think_ms), lambda: self._ack(cable))

    def _ack(self, cable: object) -> None:
        if self.cable is cable and self.ready and self._unacked:
            # An ack on a stream gives credit, and settles nothing.
            self.send(BasicAck(self._unacked[-1], True))
            self._unacked = []


class StreamDrainer(StreamConsumer):
    """Reads the whole stream, after all other clients have left."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind, checker: StreamsKept) -> None:
        super().__init__(scene, name, kind, checker)
        self._prefetch, self._think_ms = PREFETCH_MAX, 0

    def _start(self) -> str | int:
        self._expected = self.next_offset
        return self.next_offset if self.next_offset else "first"

    def _take(self, tag: int, body: bytes) -> None:
        super()._take(tag, body)
        self.scene.ledger.left.setdefault(self._kind.name, []).append(self.scene.ledger.message_of(body))
