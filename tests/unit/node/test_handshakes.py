"""Clients that come in thousands: a few in each step, in order, and none of them for ever."""

from __future__ import annotations

from random import Random

import pytest

from pandomq import limits
from pandomq.methods import ConnectionOpen, ConnectionStartOk, ConnectionTuneOk
from pandomq.node.clients.client_link import ClientLink
from pandomq.node.node import Node
from pandomq.node.output import Abort, Output, PauseReading, ResumeReading, VerifyPassword
from pandomq.node.settings import NodeSettings
from pandomq.wire.codec import encode_frame
from pandomq.wire.states import ConnectionState

NOW_MS = 1_000_000
HEADER = b"AMQP\x00\x00\x09\x01"
LOGIN = encode_frame(0, ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))
REST = encode_frame(0, ConnectionTuneOk(10, 131072, 0)) + encode_frame(0, ConnectionOpen("/"))
GREETING = HEADER + LOGIN + REST


class Hall:
    """A node, and those who came to it."""

    def __init__(self) -> None:
        self.node = Node(NodeSettings(name="n", password_log_cost=1), Random(1), NOW_MS)
        self.now_ms = NOW_MS
        self.outputs: list[Output] = []

    def come(self, octets: bytes = b"") -> ClientLink:
        link = self.node.accept(object(), ("127.0.0.1", 1), self.now_ms)
        if octets:
            self.say(link, octets)
        return link

    def say(self, link: ClientLink, octets: bytes) -> None:
        self.node.receive(link, memoryview(octets), self.now_ms)

    def step(self) -> Output:
        output = self.node.step(self.now_ms)
        self.outputs.append(output)
        for control in output.controls:
            if isinstance(control, VerifyPassword):
                fits = control.question.fits()
                self.node.verified(control.attempt, control.question, fits=fits, now_ms=self.now_ms)
        return output

    def pass_time(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        self.node.tick(self.now_ms)


@pytest.fixture
def hall() -> Hall:
    return Hall()


def is_open(link: ClientLink) -> bool:
    return link.connection.state is ConnectionState.RUNNING


@pytest.mark.proves("R13")
def test_in_each_step_a_few_come_in_and_all_of_them_in_order(hall: Hall) -> None:
    links = [hall.come(GREETING) for _ in range(10 * limits.HANDSHAKES_PER_STEP_MAX)]
    steps = 0
    while not all(map(is_open, links)):
        opened = sum(map(is_open, links))
        output = hall.step()
        steps += 1
        now_open = [is_open(link) for link in links]
        assert sum(now_open) - opened <= limits.HANDSHAKES_PER_STEP_MAX
        assert now_open == sorted(now_open, reverse=True), "who came first is first"
        assert output.more or all(now_open), "the next step is asked for"
    assert steps <= 11
    assert hall.node.handshake_room == limits.HANDSHAKES_MAX


def test_clients_that_waited_for_one_password_check_open_a_few_at_a_time(hall: Hall) -> None:
    """The password is looked at once, and they are many."""
    hall.node.change_settings(NodeSettings(name="n", password_log_cost=1))
    hall.node.logins._credentials._digests.clear()
    links = [hall.come(GREETING) for _ in range(4 * limits.HANDSHAKES_PER_STEP_MAX)]
    before = 0
    for _ in range(20):
        output = hall.step()
        opened = sum(map(is_open, links))
        assert opened - before <= 2 * limits.HANDSHAKES_PER_STEP_MAX
        before = opened
    assert all(map(is_open, links))
    assert not output.more
    asked = [control for one in hall.outputs for control in one.controls if isinstance(control, VerifyPassword)]
    assert len(asked) == 1


def test_the_number_of_handshakes_is_bounded(hall: Hall) -> None:
    links = [hall.come(HEADER) for _ in range(100)]
    assert hall.node.handshake_room == limits.HANDSHAKES_MAX - 100
    while hall.step().more:
        pass
    for link in links[:50]:
        hall.say(link, LOGIN + REST)
    for link in links[50:75]:
        hall.node.disconnected(link, hall.now_ms)
    for link in links[75:]:
        hall.say(link, b"nonsense")
    while hall.step().more:
        pass
    assert hall.node.handshake_room == limits.HANDSHAKES_MAX
    assert sum(map(is_open, links)) == 50


def test_a_client_that_sends_more_while_its_login_waits_is_not_read_from(hall: Hall) -> None:
    crowd = [hall.come(GREETING) for _ in range(limits.HANDSHAKES_PER_STEP_MAX)]
    talker = hall.come(HEADER)
    hall.say(talker, LOGIN)
    output = hall.step()
    assert PauseReading(talker) in output.controls
    assert all(map(is_open, crowd))
    hall.say(talker, REST)
    output = hall.step()
    assert ResumeReading(talker) in output.controls
    assert is_open(talker)


def test_the_last_bytes_of_a_client_that_has_disconnected_are_handled(hall: Hall) -> None:
    there = hall.come(GREETING)
    gone = hall.come(b"GET / HTTP/1.1\r\n")
    hall.node.disconnected(gone, hall.now_ms)
    hall.step()
    assert is_open(there) and gone.gone
    assert hall.node.link_count == 1


@pytest.mark.proves("R13")
def test_of_many_clients_lost_at_once_a_few_are_removed_in_each_step(hall: Hall) -> None:
    links = [hall.come(GREETING) for _ in range(4 * limits.DEPARTURES_PER_STEP_MAX)]
    while hall.step().more:
        pass
    for link in links:
        hall.node.disconnected(link, hall.now_ms)
    left = len(links)
    while hall.step().more:
        assert left - hall.node.link_count <= limits.DEPARTURES_PER_STEP_MAX
        left = hall.node.link_count
    assert hall.node.link_count == 0


def test_the_time_that_it_waits_for_its_turn_is_not_its_own(hall: Hall) -> None:
    silent = hall.come()
    waiting = hall.come(GREETING)
    hall.pass_time(limits.HANDSHAKE_MS_MAX + 1_000)
    assert silent.gone and not waiting.gone
    hall.step()
    assert is_open(waiting)


@pytest.mark.proves("R13")
def test_slow_handshakes_make_room_when_there_are_many(hall: Hall) -> None:
    idle = [hall.come(HEADER) for _ in range(limits.HANDSHAKES_MAX)]
    while hall.step().more:
        pass
    assert hall.node.handshake_room == 0
    hall.pass_time(limits.CROWDED_HANDSHAKE_MS_MAX - 250)
    assert hall.node.handshake_room == 0
    hall.pass_time(500)
    assert hall.node.handshake_room == limits.DROPS_PER_TICK_MAX
    assert all(link.gone for link in idle[: limits.DROPS_PER_TICK_MAX]), "the first of them"
    aborted = [control for control in hall.step().controls if isinstance(control, Abort)]
    assert len(aborted) == limits.DROPS_PER_TICK_MAX
    hall.pass_time(500)
    assert hall.node.handshake_room == limits.DROPS_PER_TICK_MAX, "there is room now"


def test_of_many_handshakes_whose_time_is_over_some_are_closed_later(hall: Hall) -> None:
    for _ in range(3 * limits.DROPS_PER_TICK_MAX):
        hall.come()
    hall.pass_time(limits.HANDSHAKE_MS_MAX + 500)
    assert hall.node.link_count == 2 * limits.DROPS_PER_TICK_MAX
    for _ in range(2):
        hall.pass_time(500)
    assert hall.node.link_count == 0
