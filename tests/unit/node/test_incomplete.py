"""Messages that are not whole yet: bounded in the sum over all connections, and the greediest goes first."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from pandomq.limits import INCOMPLETE_MEMORY_PARTS, INCOMPLETE_MESSAGES_MAX, KIB, MIB
from pandomq.node.clients.incomplete import IncompleteMessages
from pandomq.node.settings import NodeSettings
from tests.fuzz.node_world import NOWHERE, NodeWorld
from tests.support.client import Channel, Connection
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER

if TYPE_CHECKING:
    from pandomq.node.clients.client_link import ClientLink

SETTINGS = NodeSettings(memory_bytes_max=16 * MIB, message_bytes_max=1 * MIB)
ALLOWED = SETTINGS.memory_bytes_max // INCOMPLETE_MEMORY_PARTS
TEXT = "RESOURCE_ERROR - partly received messages of all connections take more than …"
PIECE = b"x" * (64 * KIB)


@pytest.fixture
def world() -> NodeWorld:
    return NodeWorld(Random(0), SETTINGS)


def begin(world: NodeWorld, pieces: int) -> Channel:
    """A client that has sent that many pieces of a message of sixteen, and waits for its confirm."""
    channel = Connection.opened(NOWHERE, stream=world.connect()).channel()
    begin_message(channel, pieces)
    return channel


def begin_message(channel: Channel, pieces: int) -> None:
    channel.rpc("confirm.select")
    channel.send("basic.publish", routing_key="nowhere")
    channel.connection.send_frame(HEADER, channel.number, content_header(16 * len(PIECE), {}))
    send(channel, pieces)


def send(channel: Channel, pieces: int) -> None:
    for _ in range(pieces):
        channel.connection.send_frame(BODY, channel.number, PIECE)


def test_the_greediest_is_closed_and_the_others_complete_theirs(world: NodeWorld) -> None:
    modest = [begin(world, 9) for _ in range(5)]
    greedy = begin(world, 15)
    begin_message(greedy.connection.channel(), 5)
    greedy.connection.expect_close(506, TEXT)
    assert world.node.link_count == len(modest)
    for channel in modest:
        send(channel, 7)
        assert channel.confirmed().delivery_tag == 1


def test_many_connections_of_one_user_do_not_cost_another_user_its_message() -> None:
    def link(user: str, count: int) -> ClientLink:
        connection = Mock(incomplete_bytes=count, agreed=Mock(frame_max=4 * KIB))
        return Mock(connection=connection, client=Mock(user=user))

    incomplete = IncompleteMessages(SETTINGS)
    honest = link("ann", MIB)
    assert incomplete.received(honest) is None
    hostile = [link("mallory", ALLOWED // 8 + number) for number in range(1, 7)]
    assert [incomplete.received(one) for one in hostile] == [None] * 5 + [hostile[-1]]


@pytest.mark.proves("R38")
def test_messages_of_one_user_have_a_bound_of_their_own() -> None:
    def link(user: str, count: int) -> ClientLink:
        connection = Mock(incomplete_bytes=count, agreed=Mock(frame_max=4 * KIB))
        return Mock(connection=connection, client=Mock(user=user))

    settings = NodeSettings(
        memory_bytes_max=400 * MIB, message_bytes_max=1 * MIB, incomplete_per_user_bytes_max=10 * MIB
    )
    incomplete = IncompleteMessages(settings)
    small, large, third = link("mallory", 4 * MIB), link("mallory", 5 * MIB), link("mallory", 2 * MIB)
    assert [incomplete.received(one) for one in (small, large, link("ann", 10 * MIB))] == [None] * 3
    assert incomplete.received(third) is large
    assert incomplete.fault.reply_code == 506
    assert "user 'mallory'" in incomplete.fault.reply_text
    assert "incomplete_per_user_bytes_max" in incomplete.fault.reply_text
    incomplete.forget(large)
    assert incomplete.received(link("mallory", 4 * MIB)) is None
    incomplete.change_settings(NodeSettings(memory_bytes_max=400 * MIB, incomplete_per_user_bytes_max=0))
    assert incomplete.received(link("mallory", 50 * MIB)) is None


def test_messages_that_ended_are_not_counted(world: NodeWorld) -> None:
    for number in range(40):
        channel = begin(world, 12)
        if number % 2:
            send(channel, 4)
            channel.confirmed()
            channel.connection.close()
        else:
            channel.connection.close()
    begin(world, 12)
    assert world.node.link_count == 1


def test_one_connection_may_have_its_share_however_little_memory_there_is() -> None:
    world = NodeWorld(Random(0), NodeSettings(memory_bytes_max=1 * MIB, message_bytes_max=1 * MIB))
    channels = [begin(world, 15) for _ in range(INCOMPLETE_MESSAGES_MAX)]
    for channel in channels:
        send(channel, 1)
        assert channel.confirmed().delivery_tag == 1


def test_the_limit_follows_the_settings(world: NodeWorld) -> None:
    channels = [begin(world, 12) for _ in range(ALLOWED // (12 * len(PIECE)))]
    world.node.change_settings(NodeSettings(memory_bytes_max=1 * MIB, message_bytes_max=1 * MIB))
    send(channels[-1], 1)
    channels[-1].connection.expect_close(506, TEXT)
