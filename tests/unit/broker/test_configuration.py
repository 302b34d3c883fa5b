"""The shared configuration, without messages: transferred to a second broker at once, and change by change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq.broker.log.replay import apply_command
from pandomq.broker.log.revival import Revival
from pandomq.errors import ConnectionFault
from pandomq.methods import ChannelOpen, ChannelOpenOk
from tests.unit.broker.conversation import World
from tests.unit.broker.durable_view import durable_view
from tests.unit.broker.test_replay import History, steps
from tests.unit.broker.test_snapshot import no_pages


def follower_of(world: World) -> World:
    """Its broker has what is shared with this one now, and follows what changes."""
    other = World(limits=world.limits, seed=2)
    revival = Revival(other.broker, no_pages)
    for piece in world.broker.configuration():
        revival.take(piece)

    def follow(command: bytes) -> None:
        apply_command(other.broker, command)

    world.broker.on_command = follow
    return other


def configured(world: World) -> dict[str, Any]:
    view = durable_view(world.broker)
    del view["messages"]
    return view


@settings(max_examples=50)
@given(st.lists(steps, max_size=60), st.lists(steps, max_size=60))
def test_a_second_broker_knows_all_that_is_shared(before: list[Any], after: list[Any]) -> None:
    story = History()
    for step in before:
        story.play(step)
    other = follower_of(story.world)
    for step in after:
        story.play(step)
    for client in list(story.world.broker.clients):
        story.world.broker.disconnect(client, story.world.now_ms)
    story.world.run([])
    assert configured(other) == configured(story.world)
    assert not any(owner.kernel.ready_count for _, owner in other.broker.state.logged.values())


def test_changes_that_come_by_the_log_are_reported_as_well() -> None:
    world = World()
    issued: list[bytes] = []
    world.broker.on_command = issued.append
    world.peer().declare("shared", durable=True)
    world.peer().declare("private", exclusive=True)
    other = World(seed=2)
    applied: list[bytes] = []
    other.broker.on_command = applied.append
    for index, entry in enumerate(world.entries, start=1):
        other.broker.apply(index, 1, entry)
    assert len(issued) == 1
    assert applied == issued


def test_a_trunk_may_do_everything_and_is_no_user() -> None:
    world = World()
    client = world.connect(user="", origin="n2", trunk=True).client
    assert client.access.permissions is not None
    assert client.user not in world.broker.tallies
    assert client.user not in world.broker.state.vhosts["/"].access
    with pytest.raises(ConnectionFault, match="vhost nowhere not found"):
        world.connect(user="", vhost="nowhere", origin="n2", trunk=True)


def test_clients_of_other_brokers_have_routes_of_their_own() -> None:
    world = World()
    here, there = world.connect(), world.connect(origin="n2")
    assert here.client.session.routes is world.connect().client.session.routes
    assert there.client.session.routes is not here.client.session.routes
    assert there.client.session.routes is world.connect(origin="n2").client.session.routes
    assert there.client.session.routes is not world.connect(origin="n3").client.session.routes
    there.call(ChannelOpen(), expect=ChannelOpenOk)
    world.peer().declare("q")
    there.publish("", "q")
    assert len(there.client.session.routes) == 1
    world.admit("guest")
    assert len(there.client.session.routes) == 0
