"""A command is encoded before it changes anything: a broker never has state that its log lacks."""

from __future__ import annotations

import pytest

from pandomq.broker.log.commands import DecideBatch, DeclareQueue, PutVhost, StoreOffset
from tests.unit.broker.conversation import World
from tests.unit.broker.durable_view import durable_view
from tests.unit.broker.stream_scene import declared

LONE_SURROGATE = "\ud800"


@pytest.mark.proves("R38")
def test_a_message_command_that_cannot_be_encoded_changes_nothing() -> None:
    world = World()
    declared(world).leave()
    for command in (
        DecideBatch("/", LONE_SURROGATE, 1, [], world.now_ms),
        StoreOffset("/", "s", LONE_SURROGATE, 1),
        StoreOffset("/", "s", "n", 2**64),
    ):
        before, entries = durable_view(world.broker), len(world.entries)
        with pytest.raises((UnicodeEncodeError, OverflowError)):
            world.broker.log(command)
        world.run([])
        assert durable_view(world.broker) == before
        assert len(world.entries) == entries
    assert durable_view(world.replayed().broker) == durable_view(world.broker)


@pytest.mark.proves("R38")
def test_a_configuration_command_that_cannot_be_encoded_changes_nothing() -> None:
    world = World()
    before = durable_view(world.broker)
    for command in (
        DeclareQueue("/", LONE_SURROGATE, 7, True, False, b"\0\0\0\0", "guest", world.now_ms),
        PutVhost(LONE_SURROGATE),
    ):
        with pytest.raises(UnicodeEncodeError):
            world.broker.issue(command)
    world.run([])
    assert durable_view(world.broker) == before
    assert world.entries == []
