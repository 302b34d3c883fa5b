"""Clients of a front for which the root lets no tunnel in: none of them waits without a limit (R15)."""

from __future__ import annotations

import pytest

from pandomq.broker.administration.passwords import SCRYPT, hash_password
from pandomq.broker.log.commands import DeletePermissions, PutPermissions, PutUser
from pandomq.cluster.dialed_connection import Dialed
from pandomq.cluster.proxy.tunnel import TUNNEL, Tunnel
from pandomq.methods import ConnectionClose, MethodInput, QueueDeclare
from tests.unit.node.link_world import LinkWorld, Machine
from tests.unit.node.raw_client import Heard, RawClient
from tests.unit.node.test_front_service import ROOT_WAIT_MS, SHARED, administer, backups, hears, make_world

AGAIN = QueueDeclare("q", passive=True, durable=True)
SOON_MS = 1_500
"""For an election, and for some attempts to dial the new root."""


def close_of(client: RawClient, world: LinkWorld, limit_ms: int) -> ConnectionClose:
    def is_it(item: Heard) -> bool:
        return isinstance(item, MethodInput) and isinstance(item.method, ConnectionClose)

    heard = hears(client, world, is_it, limit_ms)
    assert isinstance(heard, MethodInput) and isinstance(heard.method, ConnectionClose)
    return heard.method


@pytest.mark.proves("R15")
@pytest.mark.parametrize("asks", [True, False])
def test_a_client_that_the_next_root_does_not_admit_is_closed_with_the_reason(asks: bool) -> None:
    """Its user lost the right to the vhost while it was connected."""
    world = make_world()
    first, (name, _) = world.root, backups(world)
    assert first is not None
    password_hash = hash_password(b"ann", bytes(16), 1)
    administer(world, PutUser("ann", password_hash, SCRYPT, ()), PutPermissions("/", "ann", ".*", ".*", ".*"))
    world.run(100)
    client = RawClient(world, name, "ann")
    client.say(SHARED)
    administer(world, DeletePermissions("/", "ann"))
    world.run(100)
    client.heard.clear()
    world.kill(first)
    if asks:
        client.write_later(AGAIN)
    closed = close_of(client, world, SOON_MS)
    assert closed.reply_code == 530
    assert closed.reply_text == "NOT_ALLOWED - access to vhost '/' refused for user 'ann'"


class DeafWorld(LinkWorld):
    """Brokers are linked, and no tunnel of a client is ever answered once `is_deaf` is set."""

    is_deaf = False

    def dial(self, machine: Machine, dialed: Dialed) -> None:
        if self.is_deaf and isinstance(dialed, Tunnel) and dialed.purpose == TUNNEL:
            assert machine.node is not None
            machine.node.not_dialed(dialed, "connection refused", self.now_ms)
        else:
            super().dial(machine, dialed)


@pytest.mark.proves("R15")
def test_a_client_that_asked_while_there_was_no_root_is_closed_if_no_tunnel_opens_in_time() -> None:
    world = make_world(DeafWorld)
    assert isinstance(world, DeafWorld)
    first, (name, _) = world.root, backups(world)
    assert first is not None
    client = RawClient(world, name)
    client.say(SHARED)
    world.is_deaf = True
    world.kill(first)
    world.run(5)
    assert world.root is None
    client.write_later(AGAIN)
    closed = close_of(client, world, ROOT_WAIT_MS + SOON_MS)
    assert closed.reply_code == 320
    assert f"for {ROOT_WAIT_MS} ms" in closed.reply_text
