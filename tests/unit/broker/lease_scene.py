"""A queue with messages, and who leases them: what the tests of leases talk to."""

from __future__ import annotations

from typing import Any

from pandomq import methods
from pandomq.broker.leases.asks import LeaseAsk
from pandomq.broker.leases.lease import LeaseView
from pandomq.broker.log.revival import Revival
from pandomq.chunk_form import decode_rows
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World

PERSISTENT = Properties(delivery_mode=2)
TIMEOUT_MS = 10_000
BYTES_MAX = 1_000_000


class Lessee:
    """Has the lease `name` of a queue."""

    def __init__(self, world: World, queue: str = "q", name: str = "job") -> None:
        self.world = world
        self.queue = queue
        self.name = name
        self.answers: list[LeaseView] = []

    def ask(self, messages_max: int = 1000, *, bytes_max: int = BYTES_MAX, timeout_ms: int = TIMEOUT_MS) -> None:
        ask = LeaseAsk("/", self.queue, self.name, "guest", messages_max, bytes_max, timeout_ms)
        self.world.broker.leases.lease(ask, self.answers.append, self.world.now_ms)
        self.world.run([])

    def lease(self, messages_max: int = 1000, **wishes: Any) -> LeaseView:
        self.ask(messages_max, **wishes)
        return self.answers[-1]

    def release(self, offset: int) -> LeaseView:
        leases = self.world.broker.leases
        leases.release("/", self.queue, self.name, offset, self.answers.append, self.world.now_ms)
        self.world.run([])
        return self.answers[-1]

    def end(self) -> None:
        self.world.broker.leases.end("/", self.queue, self.name, self.answers.append, self.world.now_ms)
        self.world.run([])

    def read(self, view: LeaseView | None = None) -> list[bytes]:
        """The bodies of a range, by default of what it has now."""
        view = view or self.answers[-1]
        return read(self.world, view.stream, view.first_offset, view.end_offset)

    @property
    def is_there(self) -> bool:
        return self.world.broker.state.leases.find("/", self.queue, self.name) is not None


def read(world: World, stream: str, first_offset: int, end_offset: int) -> list[bytes]:
    """As the data port reads: chunk after chunk."""
    found = world.broker.streams.find("/", stream)
    assert found is not None
    rows: dict[int, bytes] = {}
    offset = first_offset
    while offset < end_offset:
        chunks: list[bytes | None] = []
        found.read(offset, chunks.append)
        assert chunks and chunks[0] is not None, (offset, found.first_offset, found.committed_end)
        rows.update({row.offset: row.body for row in decode_rows(chunks[0])})
        offset = max(rows) + 1
    return [rows[offset] for offset in range(first_offset, end_offset)]


def filled(count: int, queue: str = "q", *, properties: Properties = PERSISTENT, **options: Any) -> tuple[World, Peer]:
    """A broker whose queue has messages `m0`, `m1` and so on, published by this client."""
    arguments, late = options.pop("arguments", {}), options.pop("late", False)
    world = World(**options)
    peer = world.peer()
    peer.declare(queue, durable=True, arguments=arguments)
    for number in range(count):
        peer.say_publish("", queue, b"m%d" % number, properties)
    peer.flush()
    world.late = late
    return world, peer


def bodies(first: int, end: int) -> list[bytes]:
    return [b"m%d" % number for number in range(first, end)]


def drained(peer: Peer, queue: str = "q") -> list[tuple[bytes, bool]]:
    """All that is ready: bodies, and whether they say `redelivered`."""
    found = []
    while (got := peer.get(queue)) is not None:
        assert isinstance(got.method, methods.BasicGetOk)
        found.append((got.body, got.method.redelivered))
    return found


def taken_over(world: World) -> World:
    """Another broker with the same log becomes root."""
    other = world.replayed()
    other.now_ms = world.now_ms
    Revival(other.broker, lambda place: place).finish(world.now_ms, takeover=True)
    other.run([])
    return other


def both(world: World) -> list[World]:
    """The broker itself, and one that was given its log."""
    return [world, world.replayed()]
