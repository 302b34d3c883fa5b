"""A node that meets an exception which nobody expected: it goes on if it may, and begins again if it must."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.broker.log.commands import PutUser
from pandomq.broker.state import ReplicatedState
from pandomq.errors import Fault
from pandomq.methods import QueueDeclare
from pandomq.node.containment import LifeOver
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.runtime.restart_delay import FORGOTTEN_S, PAUSE_S, PAUSE_S_MAX, RestartDelay
from pandomq.sim.disks.disk import SimDisk
from tests.unit.node.lives import Life, Publisher, Reader


class Bug(Exception):
    pass


def fail(*_: object, **__: object) -> None:
    raise Bug


def a_life() -> Life:
    return Life(SimDisk(Random(1)), 1_000)


@pytest.mark.proves("R38")
def test_a_broker_in_doubt_restarts_and_keeps_the_confirmed_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    life = a_life()
    publisher = Publisher(life)
    publisher.say(QueueDeclare("q", durable=True))
    publisher.publish("q", b"safe")
    life.until(lambda: publisher.confirmed == 1)
    publisher.publish("q", b"in doubt")
    with monkeypatch.context() as patched:
        patched.setattr(type(life.broker), "_finish", fail)
        output = life.node.step(life.now_ms)
    assert output.restart is not None and output.disk == ()
    assert publisher.confirmed == 1
    assert [type(error) for error in life.node.guard.errors] == [Bug]
    assert not life.node.ready
    again = Life(life.disk, life.now_ms + 1_000)
    reader = Reader(again)
    reader.consume("q")
    again.until(lambda: bool(reader.delivered))
    assert reader.delivered == [b"safe"]


def test_a_broker_in_memory_cannot_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(NodeSettings(), Random(1), 1_000)
    monkeypatch.setattr(type(node._pressure), "watch", fail)
    with pytest.raises(LifeOver):
        node.step(1_001)


def test_bytes_that_cannot_be_read_close_the_connection_that_they_came_over(monkeypatch: pytest.MonkeyPatch) -> None:
    life = a_life()
    socket: Any = SimpleNamespace()
    link = life.node.accept(socket, ("127.0.0.1", 5_000), life.now_ms)
    with monkeypatch.context() as patched:
        patched.setattr(type(life.node._input_router), "_hear", fail)
        patched.setattr(type(life.node._links.handshakes), "concerns", lambda *_: False)
        life.node.receive(link, memoryview(b"anything"), life.now_ms)
    output = life.node.step(life.now_ms)
    assert output.restart is None and life.node.ready
    assert life.node.link_count == 0 or link.ended


def test_inputs_after_a_read_that_failed_are_not_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit would be carried out without the publishes that the failed read brought."""
    life = a_life()
    socket: Any = SimpleNamespace()
    link = life.node.accept(socket, ("127.0.0.1", 5_000), life.now_ms)
    gathered: list[object] = []

    def gather(_input_router: object, _link: object, inputs: Any, _now_ms: int) -> list[object]:
        gathered.extend(inputs)
        if inputs == ["publishes"]:
            raise Bug
        return []

    with monkeypatch.context() as patched:
        patched.setattr(type(life.node._links.handshakes), "concerns", lambda *_: False)
        patched.setattr(type(link.connection), "receive", lambda _, data: [bytes(data).decode()])
        patched.setattr(type(life.node._input_router), "_gather", gather)
        for said in (b"before", b"publishes", b"commit"):
            life.node.receive(link, memoryview(said), life.now_ms)
    assert gathered == ["before", "publishes"]
    output = life.node.step(life.now_ms)
    assert output.restart is None and life.node.ready
    assert life.node.link_count == 0 or link.ended


def test_an_exception_in_a_timer_restarts_the_state_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    life = a_life()
    with monkeypatch.context() as patched:
        patched.setattr(type(life.node._links), "tick", fail)
        life.node.tick(life.now_ms)
    assert life.node.step(life.now_ms).restart is not None


def test_a_command_of_an_administrator_that_raises_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    life = a_life()
    heard: list[Fault | None] = []
    with monkeypatch.context() as patched:
        patched.setattr(type(life.broker.administration), "submit", fail)
        life.node.administer(PutUser("u", "", "scrypt", ()), heard.append)
        assert life.node.step(life.now_ms).restart is None
    [fault] = heard
    assert fault is not None and fault.reply_code == 541


def test_a_command_that_raises_after_a_change_restarts_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    life = a_life()
    heard: list[Fault | None] = []
    with monkeypatch.context() as patched:
        patched.setattr(ReplicatedState, "apply", fail)
        life.node.administer(PutUser("u", "", "scrypt", ()), heard.append)
        assert life.node.step(life.now_ms).restart is not None
    assert heard[0] is not None and heard[0].reply_code == 541


def test_restarts_in_succession_pause_longer_each_time() -> None:
    delay = RestartDelay()
    assert [delay.pause_s(now_s) for now_s in (0, 1, 2, 3)] == [0, PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S]
    assert max(delay.pause_s(4) for _ in range(20)) == PAUSE_S_MAX
    assert delay.pause_s(4 + FORGOTTEN_S) == 0
