"""A stream to talk about, on a broker that a test talks to."""

from __future__ import annotations

from typing import Any

from pandomq import methods
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from pandomq.broker.streams.chunk_cache import InMemory
from pandomq.broker.streams.stream import Stream
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World

STREAM = {"x-queue-type": "stream"}
FILTER_VALUE = "x-stream-filter-value"


class Placed(InMemory):
    """Chunks to which a snapshot can refer."""

    __slots__ = ("place",)

    def __init__(self, blob: bytes, number: int) -> None:
        super().__init__(blob)
        self.place = (number, 0, len(blob), 0)


class Places:
    """A store as the journal is one, and later gives back what a snapshot names."""

    def __init__(self, numbers_after: int = 0) -> None:
        self.held_bytes = 0
        self.kept: dict[tuple[int, int, int, int], Placed] = {}
        self.last_number = numbers_after
        self.asked: list[tuple[Placed, Any]] | None = None
        """If it is a list, those who want a chunk wait in it."""

    def put(self, blob: bytes) -> Placed:
        self.last_number += 1
        stored = Placed(blob, self.last_number)
        self.kept[stored.place] = stored
        return stored

    def fetch(self, stored: Placed, on_bytes: Any) -> None:
        if self.asked is None:
            on_bytes(stored.blob)
        else:
            self.asked.append((stored, on_bytes))

    def free(self, stored: Placed) -> None:
        del self.kept[stored.place]
        waiting = [asked for asked in self.asked or () if asked[0] is stored]
        for asked in waiting:
            assert self.asked is not None
            self.asked.remove(asked)
            asked[1](None)


def stream_world(**options: Any) -> tuple[World, Places]:
    world = World(**options)
    places = world.broker.state.chunk_cache.store = Places()
    return world, places


def declared(world: World, name: str = "s", **arguments: Any) -> Peer:
    """A client with a stream and a channel of prefetch 1000."""
    peer = world.peer()
    peer.declare(
        name, durable=True, arguments={**STREAM, **{f"x-{key.replace('_', '-')}": arguments[key] for key in arguments}}
    )
    peer.call(methods.BasicQos(0, 1000, False), expect=methods.BasicQosOk)
    return peer


def stream_of(world: World, name: str = "s") -> Stream:
    stream = world.broker.streams.find("/", name)
    assert stream is not None
    return stream


def fill(peer: Peer, count: int, body: bytes = b"%d", *, first: int = 0, **headers: Any) -> None:
    """Each in a batch of its own."""
    properties = Properties(headers=headers) if headers else None
    for number in range(first, first + count):
        peer.publish("", "s", body % number if b"%" in body else body, properties)


def heard_offsets(peer: Peer) -> list[int]:
    return [
        received.properties.headers["x-stream-offset"]
        for received in peer.hear()
        if received.properties is not None and received.properties.headers is not None
    ]


def revived(world: World, places: Places) -> World:
    """A fresh broker from a snapshot of this one, with the same store."""
    other, found = World(limits=world.limits, seed=3), Places(places.last_number)
    for user in list(other.broker.state.users):
        del other.broker.state.users[user]
    other.broker.state.chunk_cache.store = found
    snapshot = Snapshot(world.broker, exact=True)
    revival = Revival(other.broker, lambda place: found.kept.setdefault(place, places.kept[place]))
    for piece in snapshot.pieces(1000):
        revival.take(piece)
    return other


def chunk_bytes(world: World, name: str = "s") -> list[bytes]:
    """All that can be read of it, chunk by chunk."""
    stream = stream_of(world, name)
    found: list[bytes] = []
    for row in stream.chunks(0, 2**62, 10**6):
        stream.read(row.first_offset, lambda blob: found.append(blob or b""))
    return found
