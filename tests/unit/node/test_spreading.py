"""Clients hear of all brokers, those with the fewest clients first; who wants the root is sent there."""

from __future__ import annotations

import struct
from typing import Any, Literal

import pytest

from pandomq.methods import (
    ConnectionClose,
    ConnectionOpen,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTuneOk,
    Method,
)
from pandomq.methods import ConnectionOpenOk as OpenOk
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.peers.loads import TOLD_EVERY_MS
from pandomq.wire.codec import decode_method, encode_frame
from tests.unit.node.link_world import End, LinkWorld

HEADER = b"AMQP\x00\x00\x09\x01"
PATIENCE_MS = TOLD_EVERY_MS + 500
Access = Literal["redirect", "proxy"]


class Guest(End):
    """A client that hears what it is told."""

    def __init__(self, world: LinkWorld, name: str, properties: dict[str, Any] | None = None) -> None:
        super().__init__(world, None)
        self.heard = b""
        near = world.connect(world.machines[name])
        self.other, near.other.other = near.other, self
        world.ends[world.ends.index(near)] = self
        assert isinstance(self.other.link, ClientLink)
        # Where the first user may come from.
        self.other.link.peer = ("127.0.0.1", 1)
        login = ConnectionStartOk(properties or {}, "PLAIN", b"\0guest\0guest", "en_US")
        frames = (login, ConnectionTuneOk(10, 131072, 0), ConnectionOpen("/"))
        self.write(HEADER + b"".join(encode_frame(0, method) for method in frames))

    def take(self, data: bytes) -> None:
        self.heard += data

    @property
    def methods(self) -> list[Method]:
        found, offset = [], 0
        while offset + 7 <= len(self.heard):
            (size,) = struct.unpack_from(">I", self.heard, offset + 3)
            found.append(decode_method(self.heard[offset + 7 : offset + 7 + size]))
            offset += size + 8
        return found

    @property
    def told(self) -> dict[str, Any]:
        """The server properties."""
        start = self.methods[0]
        assert isinstance(start, ConnectionStart)
        return dict(start.server_properties)


def world_with(access: Access) -> tuple[LinkWorld, str, list[str]]:
    """A cluster with a root, and its backups."""
    changes: dict[str, Any] = {f"n{number}": {"access": access} for number in (1, 2, 3)}
    world = LinkWorld(**changes)
    world.until(lambda: world.root is not None)
    assert world.root is not None
    return world, world.root, [name for name in world.machines if name != world.root]


def address(name: str) -> str:
    return f"{name}.example:5672"


def crowd(world: LinkWorld, name: str, count: int) -> None:
    for _ in range(count):
        world.connect(world.machines[name])
    world.run(PATIENCE_MS)


@pytest.mark.proves("R14")
def test_the_least_loaded_brokers_are_named_first() -> None:
    world, root, (one, other) = world_with("proxy")
    crowd(world, root, 20)
    crowd(world, one, 10)
    guest = Guest(world, one)
    world.run(10)
    assert guest.told["brokers"] == [address(other), address(one), address(root)]
    assert guest.told["root"] == address(root)


@pytest.mark.proves("R14")
def test_where_only_the_root_serves_it_is_named_first() -> None:
    world, root, (one, other) = world_with("redirect")
    crowd(world, root, 20)
    crowd(world, one, 5)
    guest = Guest(world, other)
    world.run(10)
    assert guest.told["brokers"] == [address(root), address(other), address(one)]
    refusal = guest.methods[-1]
    assert isinstance(refusal, ConnectionClose)
    assert refusal.reply_text.endswith(f"this broker is a backup; the root is {root} at {address(root)}")


@pytest.mark.proves("R14")
@pytest.mark.parametrize("access", ["redirect", "proxy"])
def test_a_client_that_asks_for_the_root_is_sent_there(access: Access) -> None:
    world, root, (backup, _) = world_with(access)
    world.run(1_000)
    guests = {name: Guest(world, name, {"connect_to_root": True}) for name in (root, backup)}
    world.run(500)
    assert isinstance(guests[root].methods[-1], OpenOk)
    refusal = guests[backup].methods[-1]
    assert isinstance(refusal, ConnectionClose)
    assert refusal.reply_text.endswith(f"this broker is a backup; the root is {root} at {address(root)}")


@pytest.mark.proves("R14")
def test_every_broker_knows_how_many_clients_the_others_have() -> None:
    world, root, (backup, lost) = world_with("redirect")
    crowd(world, backup, 7)
    for name in (root, backup):
        members = world.node(name).views.cluster().members
        assert {member.name: member.connections for member in members} == {root: 0, backup: 7, lost: 0}
    world.kill(lost)
    world.run(PATIENCE_MS)
    members = world.node(root).views.cluster().members
    assert {member.name: member.connections for member in members} == {root: 0, backup: 7, lost: None}
