"""What a broker passes on between two others: in order, no more than they take, and as long as both are there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pandomq.node.dialed import Dialed
from pandomq.node.incomplete import IncompleteMessages
from pandomq.node.link import Link
from pandomq.node.links import Links, Writes
from pandomq.node.output import Close, Control, Dial, HangUp, PauseReading, PeerControl, ResumeReading
from pandomq.node.relays import Relay, Relays
from pandomq.node.settings import NodeSettings
from pandomq.node.target import PeerWrites
from pandomq.wire.pulse import NEVER_MS
from tests.unit.cluster.meeting import hello

NOW_MS = 1_000


class Between:
    """One connection that is passed on."""

    def __init__(self) -> None:
        self.links = Links(IncompleteMessages(NodeSettings(name="n3")), NOW_MS)
        self.relays = Relays(self.links, {"n1": "n1.example:5672"}.get)  # type: ignore[arg-type]
        connection: Any = SimpleNamespace(
            due_ms=5, said=[], accept_login=lambda offer: [], challenge=lambda text: connection.said.append(text)
        )
        connection.hang_up = lambda: connection.said.append(b"hung up")
        self.link = Link(object(), ("10.0.0.2", 1000), connection)
        self.asked = hello("n2", purpose="passage", beyond="n1")
        assert self.relays.objection(self.asked) is None
        self.relays.begin(self.link, self.asked, NOW_MS)
        assert self.link.relay is not None and connection.due_ms == NEVER_MS
        self.relay: Relay = self.link.relay
        assert self.step() == ([], [], [], [Dial(self.relay)])

    def open(self) -> None:
        self.relay.socket = object()
        self.relays.dialed(self.relay, NOW_MS)

    def step(self) -> tuple[Writes, PeerWrites, list[Control], list[PeerControl]]:
        writes: Writes = []
        peer_writes: PeerWrites = []
        controls: list[PeerControl] = []
        self.relays.pass_on(writes, peer_writes, controls)
        near, self.links.controls = self.links.controls, []
        return writes, peer_writes, near, controls


def written(writes: PeerWrites | Writes) -> list[tuple[Link | Dialed, bytes]]:
    return [(whom, bytes(data)) for whom, data in writes]


def test_octets_go_both_ways_in_order() -> None:
    between = Between()
    between.open()
    buffer = bytearray(b"first")
    between.relay.take(memoryview(buffer), NOW_MS)
    buffer[:] = b"again"
    between.relay.take(memoryview(buffer), NOW_MS)
    between.relays.receive(between.relay, memoryview(b"answer"), NOW_MS)
    writes, peer_writes, near, controls = between.step()
    assert written(writes) == [(between.link, b"answer")]
    assert written(peer_writes) == [(between.relay, b"first"), (between.relay, b"again")]
    assert not near and not controls


def test_who_does_not_take_it_holds_the_other_end_back() -> None:
    between = Between()
    between.open()
    between.relay.writing_paused = True
    between.relay.take(memoryview(b"much"), NOW_MS)
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


def test_when_one_end_hangs_up_the_other_gets_what_it_said_and_is_hung_up_on() -> None:
    between = Between()
    between.open()
    between.relays.receive(between.relay, memoryview(b"last words"), NOW_MS)
    between.relays.lost(between.relay, NOW_MS)
    writes, _, near, _ = between.step()
    assert written(writes) == [(between.link, b"last words")] and near == [Close(between.link)]
    assert not len(between.relays)
    between = Between()
    between.open()
    between.relay.take(memoryview(b"last words"), NOW_MS)
    between.relays.link_lost(between.relay)
    _, peer_writes, _, controls = between.step()
    assert written(peer_writes) == [(between.relay, b"last words")] and controls == [HangUp(between.relay)]
    assert not len(between.relays) and between.relay.gone


def test_who_speaks_before_there_is_a_way_is_hung_up_on() -> None:
    between = Between()
    between.relay.take(memoryview(b"too early"), NOW_MS)
    assert between.step() == ([], [], [Close(between.link)], [])


def test_it_is_told_if_there_is_no_way_after_all() -> None:
    between = Between()
    between.relays.not_dialed(between.relay, "no answer", NOW_MS)
    connection: Any = between.link.connection
    assert b"n1 cannot be reached: no answer" in connection.said[0] and connection.said[1] == b"hung up"
    assert not len(between.relays)


def test_only_who_is_reached_directly_is_passed_on_to() -> None:
    between = Between()
    assert between.relays.objection(hello("n2", purpose="passage", beyond="n4")) == (
        "it has no direct link to n4, either"
    )
