"""A broker relays bytes between two others: in order, no more than they read, and as long as both are connected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pandomq.node.clients.client_link import ClientLink
from pandomq.node.clients.client_links import ClientLinks
from pandomq.node.clients.incomplete import IncompleteMessages
from pandomq.node.output import AnyLink, Close, Control, Dial, PauseReading, ResumeReading, Writes
from pandomq.node.peers.relays import Relay, Relays
from pandomq.node.settings import NodeSettings
from pandomq.wire.pulse import NEVER_MS
from tests.unit.cluster.meeting import hello

NOW_MS = 1_000


class Between:
    """One connection that is passed on."""

    def __init__(self) -> None:
        self.links = ClientLinks(IncompleteMessages(NodeSettings(name="n3")), NOW_MS)
        self.relays = Relays(self.links, {"n1": "n1.example:5672"}.get)  # type: ignore[arg-type]
        connection: Any = SimpleNamespace(
            due_ms=5, said=[], accept_login=lambda offer: [], challenge=lambda text: connection.said.append(text)
        )
        connection.hang_up = lambda: connection.said.append(b"hung up")
        self.link = ClientLink(object(), ("10.0.0.2", 1000), connection)
        self.asked = hello("n2", purpose="passage", beyond="n1")
        assert self.relays.objection(self.asked) is None
        self.relays.begin(self.link, self.asked, NOW_MS)
        assert isinstance(self.link.owner, Relay) and connection.due_ms == NEVER_MS
        self.relay = self.link.owner
        assert self.step() == ([], [], [], [Dial(self.relay)])

    def open(self) -> None:
        self.relay.socket = object()
        self.relays.dialed(self.relay, NOW_MS)

    def step(self) -> tuple[Writes, Writes, list[Control], list[Control]]:
        writes: Writes = []
        peer_writes: Writes = []
        controls: list[Control] = []
        self.relays.pass_on(writes, peer_writes, controls)
        near, self.links.controls = self.links.controls, []
        return writes, peer_writes, near, controls


def written(writes: Writes) -> list[tuple[AnyLink, bytes]]:
    return [(whom, bytes(data)) for whom, data in writes]


def test_octets_go_both_ways_in_order() -> None:
    between = Between()
    between.open()
    buffer = bytearray(b"first")
    between.relay.receive(between.link, memoryview(buffer), NOW_MS)
    buffer[:] = b"again"
    between.relay.receive(between.link, memoryview(buffer), NOW_MS)
    between.relays.receive(between.relay, memoryview(b"answer"), NOW_MS)
    writes, peer_writes, near, controls = between.step()
    assert written(writes) == [(between.link, b"answer")]
    assert written(peer_writes) == [(between.relay, b"first"), (between.relay, b"again")]
    assert not near and not controls


def test_a_relay_stops_reading_from_one_end_while_the_other_does_not_read() -> None:
    between = Between()
    between.open()
    between.relay.writing_paused = True
    between.relay.receive(between.link, memoryview(b"much"), NOW_MS)
    assert between.step()[2:] == ([PauseReading(between.link)], [])
    assert between.step()[2:] == ([], [])
    between.relays.resume(between.relay)
    assert between.step()[2:] == ([ResumeReading(between.link)], [])
    between.link.writing_paused = True
    between.relays.receive(between.relay, memoryview(b"much"), NOW_MS)
    assert between.step()[2:] == ([], [PauseReading(between.relay)])
    between.link.writing_paused = False
    assert between.step()[2:] == ([], [ResumeReading(between.relay)])
    assert between.step()[2:] == ([], [])


def test_when_one_end_closes_the_other_gets_its_last_bytes_and_is_closed() -> None:
    between = Between()
    between.open()
    between.relays.receive(between.relay, memoryview(b"last words"), NOW_MS)
    between.relays.disconnected(between.relay, NOW_MS)
    writes, _, near, _ = between.step()
    assert written(writes) == [(between.link, b"last words")] and near == [Close(between.link)]
    assert not len(between.relays)
    between = Between()
    between.open()
    between.relay.receive(between.link, memoryview(b"last words"), NOW_MS)
    between.relay.disconnected(between.link, NOW_MS)
    _, peer_writes, _, controls = between.step()
    assert written(peer_writes) == [(between.relay, b"last words")] and controls == [Close(between.relay)]
    assert not len(between.relays) and between.relay.gone


def test_an_end_that_sends_before_the_relay_is_open_is_closed() -> None:
    between = Between()
    between.relay.receive(between.link, memoryview(b"too early"), NOW_MS)
    assert between.step() == ([], [], [Close(between.link)], [])


def test_the_near_end_is_informed_if_the_far_end_cannot_be_reached() -> None:
    between = Between()
    between.relays.not_dialed(between.relay, "no answer", NOW_MS)
    connection: Any = between.link.connection
    assert b"n1 cannot be reached: no answer" in connection.said[0] and connection.said[1] == b"hung up"
    assert not len(between.relays)


def test_only_brokers_with_a_direct_link_are_relayed_to() -> None:
    between = Between()
    assert between.relays.objection(hello("n2", purpose="passage", beyond="n4")) == (
        "this broker has no direct link to n4 either"
    )


def test_a_dial_that_is_cancelled_just_when_it_is_answered_ends_the_relay() -> None:
    between = Between()
    between.open()
    between.relays.not_dialed(between.relay, "no response", NOW_MS)
    # After the answer the requesting broker takes no objection.
    assert not between.link.connection.said  # type: ignore[attr-defined]
    assert between.step()[2:] == ([Close(between.link)], [Close(between.relay)])
    assert not len(between.relays)
