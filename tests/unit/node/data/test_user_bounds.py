"""One user of the data port takes a bounded part of its memory and connections; a request has a bounded time."""

from __future__ import annotations

import struct

import msgspec
import pytest

from pandomq.broker.log.commands import PutPermissions, PutUser
from pandomq.node.data import limits
from pandomq.node.data.memory_budget import MemoryBudget
from pandomq.node.data.outgoing import Outgoing

from .data_port import Connection, DataPort, encode

ANNOUNCED = struct.pack("<II", 100, 2**24) + b"{"
"""The head of a request of 16 MiB, and a byte of it."""


class Scene:
    """Users `guest` and `mallory`, who may do nothing."""

    def __init__(self, **changes: int) -> None:
        self.port = DataPort()
        broker = self.port.node.broker
        broker.limits = msgspec.structs.replace(broker.limits, **changes)
        guest = broker.state.users["guest"]
        broker.issue(PutUser("mallory", guest.password_hash, guest.hashing, ()))
        broker.issue(PutPermissions("/", "mallory", "^$", "^$", "^$"))
        self.port.step()

    def mallory(self) -> Connection:
        connection = self.port.connect()
        connection.greet(user="mallory")
        return connection


@pytest.mark.proves("R38")
def test_requests_that_one_user_announces_do_not_take_the_memory_of_others() -> None:
    scene = Scene()
    hostile = [scene.mallory() for _ in range(8)]
    for connection in hostile:
        connection.say_octets(ANNOUNCED)
    assert sum(connection.reading_paused for connection in hostile) == 5
    guest = scene.port.known()
    large = encode({"ask": "streams", "pattern": ".*"}, bytes(2**23))
    guest.say_octets(large)
    assert guest.answer() == {"streams": []}
    for connection in hostile:
        connection.lose()
    assert scene.port.node.data.held_bytes == 0


def test_a_client_that_waits_for_its_user_goes_on_when_the_user_has_room() -> None:
    scene = Scene(data_per_user_bytes_max=2**24)
    first, second = scene.mallory(), scene.mallory()
    for connection in (first, second):
        connection.say_octets(ANNOUNCED)
    assert [first.reading_paused, second.reading_paused] == [False, True]
    first.lose()
    assert not second.reading_paused


@pytest.mark.proves("R38")
def test_a_request_that_arrives_slowly_has_a_total_deadline() -> None:
    scene = Scene(data_request_ms_max=60_000)
    guest = scene.port.known()
    scene.port.pass_ms(1000)
    guest.say_octets(ANNOUNCED)
    for _ in range(11):
        scene.port.pass_ms(5_000)
        guest.say_octets(b" ")
    assert not guest.aborted
    for _ in range(4):
        scene.port.pass_ms(5_000)
        guest.say_octets(b" ")
    assert guest.aborted
    assert scene.port.node.data.held_bytes == 0


def test_each_request_has_the_whole_time() -> None:
    scene = Scene(data_request_ms_max=20_000)
    guest = scene.port.known()
    octets = encode({"ask": "streams", "pattern": ".*"})
    for _ in range(5):
        guest.say_octets(octets[:10])
        scene.port.pass_ms(8_000)
        # The end of one and the beginning of the next come in one read.
        guest.say_octets(octets[10:] + octets[:10])
        assert guest.answer() == {"streams": []}
        scene.port.pass_ms(8_000)
        guest.say_octets(octets[10:])
        assert guest.answer() == {"streams": []}
    assert not guest.aborted


def test_the_time_for_which_it_is_not_read_from_does_not_count() -> None:
    scene = Scene(data_per_user_bytes_max=2**24, data_request_ms_max=60_000)
    first, second = scene.mallory(), scene.mallory()
    first.say_octets(ANNOUNCED)
    second.say_octets(ANNOUNCED)
    for _ in range(4):
        scene.port.pass_ms(10_000)
    first.lose()
    scene.port.pass_ms(40_000)
    assert not second.aborted
    for _ in range(4):
        scene.port.pass_ms(10_000)
    assert second.aborted


@pytest.mark.proves("R38")
def test_connections_of_one_user_are_bounded() -> None:
    scene = Scene(data_connections_per_user_max=2)
    connections = [scene.mallory() for _ in range(2)]
    third = scene.port.connect()
    answer = third.greet(user="mallory")
    assert answer["error"] == 503
    assert "data_connections_per_user_max (2) is reached" in answer["text"]
    assert third.closed
    scene.port.known()
    connections[0].lose()
    assert "node" in scene.port.connect().greet(user="mallory")


def test_answers_that_one_user_does_not_take_hold_up_its_own_requests_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OUTGOING_BYTES_MAX", 100)
    scene = Scene()
    first, second = scene.mallory(), scene.mallory()
    first.takes = False
    request = {"ask": "streams", "pattern": "x" * 100}
    refusal = {"ask": "range", "stream": "s"}
    first.say(refusal)
    second.say(request)
    assert second.octets == b""
    assert scene.port.known().ask(request) == {"streams": []}
    first.take()
    assert second.answer() == {"streams": []}


def test_room_is_given_in_order_and_to_users_that_have_a_share_left() -> None:
    room: MemoryBudget[str] = MemoryBudget(100)
    room.of_user_max = 60
    assert room.take("a1", "a", 50)
    assert not room.take("a2", "a", 20)
    assert room.take("b1", "b", 40)
    assert not room.take("b2", "b", 20), "there is none left for anybody"
    assert not room.take("c1", "c", 5), "another one was first"
    room.give_back("a", 50)
    assert room.admitted() == ["a2", "b2", "c1"]
    assert (room.taken_bytes, bool(room)) == (85, False)
    for user, size_bytes in (("a", 20), ("b", 60), ("c", 5)):
        room.give_back(user, size_bytes)
    assert room.taken_bytes == 0
    assert room.take("d1", "d", 90), "one request always fits"


def test_outgoing_bytes_are_counted_by_user() -> None:
    outgoing = Outgoing(100)
    outgoing.add("a", 60)
    outgoing.add("b", 39)
    assert not outgoing.is_full
    outgoing.add("b", 1)
    assert outgoing.is_full
    assert not outgoing.remove("a", 60)
    assert outgoing.size_bytes == 40
