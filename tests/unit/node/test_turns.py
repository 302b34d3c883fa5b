"""Clients that send much that is slow to decode take turns, and delay nobody but other clients of their user."""

from __future__ import annotations

from random import Random

import pytest

from pandomq import limits
from pandomq.broker.log.commands import PutPermissions, PutUser
from pandomq.methods import ChannelOpen, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk, QueueDeclare
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.node import Node
from pandomq.node.output import PauseReading, ResumeReading, VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import encode_frame

NOW_MS = 1_000_000
TABLE = {f"key {number}": number for number in range(6_000)}
LARGE = encode_frame(1, QueueDeclare("q", False, False, False, False, True, TABLE))
SMALL = encode_frame(1, QueueDeclare("small", False, False, False, False, True, {}))


class Loop:
    """A node, and a runtime whose sockets have something to read or not."""

    def __init__(self) -> None:
        self.node = Node(NodeSettings(name="n", password_log_cost=1), Random(1), NOW_MS)
        guest = self.node.broker.state.users["guest"]
        self.node.broker.issue(PutUser("ann", guest.password_hash, guest.hashing, ()))
        self.node.broker.issue(PutPermissions("/", "ann", ".*", ".*", ".*"))
        self.paused: set[ClientLink] = set()
        self.unread: dict[ClientLink, list[bytes]] = {}
        self.handled: list[ClientLink] = []
        """In the order in which they were read."""
        self.more = False

    def connect(self, user: str) -> ClientLink:
        link = self.node.accept(object(), ("127.0.0.1", 1), NOW_MS)
        login = encode_frame(0, ConnectionStartOk({}, "PLAIN", f"\0{user}\0guest".encode(), "en_US"))
        rest = encode_frame(0, ConnectionTuneOk(10, 131072, 0)) + encode_frame(0, ConnectionOpen("/"))
        opening = b"AMQP\x00\x00\x09\x01" + login + rest + encode_frame(1, ChannelOpen())
        self.node.receive(link, memoryview(opening), NOW_MS)
        self.step()
        while self.more:
            self.step()
        assert link.client is not None
        return link

    def step(self, *, amid_pass: bool = False) -> None:
        output = self.node.step(NOW_MS, amid_pass=amid_pass)
        self.more = output.more
        for control in output.controls:
            match control:
                case PauseReading(ClientLink() as link):
                    self.paused.add(link)
                case ResumeReading(ClientLink() as link):
                    self.paused.discard(link)
                case VerifyPassword(attempt, question):
                    self.node.verified(attempt, question, fits=question.fits(), now_ms=NOW_MS)
                    self.more = True
                case _:
                    raise AssertionError(f"{control} closes a client")

    def run_pass(self) -> int:
        """As the event loop of the runtime; returns the bytes that it has read."""
        self.step()
        size = 0
        for link in list(self.unread):
            if link not in self.paused:
                data = self.unread[link].pop(0)
                if not self.unread[link]:
                    del self.unread[link]
                self.handled.append(link)
                size += len(data)
                self.node.receive(link, memoryview(data), NOW_MS)
                if self.node.turns.urgent:
                    self.step(amid_pass=True)
        return size


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.mark.proves("R38")
def test_one_pass_handles_a_bounded_number_of_slow_bytes_of_one_user(loop: Loop) -> None:
    hostile = [loop.connect("guest") for _ in range(40)]
    loop.unread = {link: [LARGE, LARGE] for link in hostile}
    bystander = loop.connect("ann")
    loop.unread[bystander] = [SMALL] * 10
    passes = 0
    while loop.unread:
        assert loop.run_pass() <= limits.DECODED_PER_PASS_BYTES_MAX + limits.READ_CHUNK_BYTES
        passes += 1
        assert (passes >= 10) is (bystander not in loop.unread), "it is read from in every pass"
        assert bystander not in loop.paused
        assert loop.more or passes == 1, "the loop is not to wait for an event"
    # All have their first turn before any has its second.
    turns = [link for link in loop.handled if link is not bystander]
    assert set(turns[:40]) == set(turns[40:]) == set(hostile)
    for _ in range(2):
        loop.step()
    assert (loop.paused, loop.more) == (set(), False)


def test_little_is_handled_at_once(loop: Loop) -> None:
    clients = [loop.connect("guest") for _ in range(300)]
    loop.unread = {link: [SMALL] for link in clients}
    loop.run_pass()
    assert loop.handled == clients
    loop.step()
    assert (loop.paused, loop.more) == (set(), False)


def test_a_client_that_disconnects_while_others_take_turns_is_forgotten(loop: Loop) -> None:
    clients = [loop.connect("guest") for _ in range(8)]
    loop.unread = {link: [LARGE] for link in clients}
    loop.run_pass()
    assert loop.paused == set(clients)
    for link in clients[:4]:
        loop.unread.pop(link, None)
        loop.node.disconnected(link, NOW_MS)
    while loop.unread:
        loop.run_pass()
    for _ in range(2):
        loop.step()
    assert loop.paused <= set(clients[:4])
    assert not loop.node.turns.taken
