"""Who tells whom what about serving clients, when the root is another one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.broker.held_replies import HeldReplies
from pandomq.cluster.serving import Grant, Report, decode_serving
from pandomq.node.serving import Serving

LEASE_MS = 1000


def replication(root: str | None, *, in_office: bool) -> Any:
    """As much of it as it takes."""
    notices = SimpleNamespace(root=root, term=1)
    return SimpleNamespace(in_office=in_office, serving=in_office, linked={"a", "b"}, notices=notices)


class Broker:
    """One of them, with its lips read."""

    def __init__(self, *, root: str | None = "r", in_office: bool = False) -> None:
        self.replication = replication(root, in_office=in_office)
        self.held = HeldReplies()
        self.said: list[tuple[str, Any]] = []
        self.serving = Serving(self.replication, self.held, LEASE_MS, self._send)
        self.serving.note_time(10_000)

    def _send(self, name: str, data: bytes) -> None:
        self.said.append((name, decode_serving(data)))

    def take_said(self) -> list[tuple[str, Any]]:
        said, self.said = self.said, []
        return said


def test_a_new_root_hears_nothing_before_private_queues_are_bound_there() -> None:
    broker = Broker()
    broker.serving.turn(5, attached=True)
    assert broker.take_said() == [("r", Report(1, 5))]
    broker.serving.received("r", Grant(1, 5))
    assert broker.serving.holds
    # With the same root a trunk that comes later is no reason to be silent.
    broker.serving.turn(6, attached=False)
    assert broker.take_said() == [("r", Report(2, 6))]
    broker.replication.notices.root = "s"
    broker.serving.turn(6, attached=False)
    assert broker.take_said() == []
    broker.serving.turn(6, attached=True)
    assert broker.take_said() == [("s", Report(3, 6))]
    assert not broker.serving.holds
    # The same broker in another term knows nothing of what it knew.
    broker.serving.received("s", Grant(3, 6))
    assert broker.serving.holds
    broker.replication.notices.term = 3
    broker.serving.turn(6, attached=False)
    assert broker.take_said() == []
    assert not broker.serving.holds


def test_nobody_is_silent_for_longer_than_a_lease() -> None:
    broker = Broker()
    broker.serving.turn(5, attached=False)
    broker.serving.note_time(10_000 + LEASE_MS - 1)
    broker.serving.turn(5, attached=False)
    assert broker.take_said() == []
    broker.serving.note_time(10_000 + LEASE_MS)
    broker.serving.turn(5, attached=False)
    assert broker.take_said() == [("r", Report(1, 5))]


@pytest.mark.proves("R31")
def test_publishes_wait_for_the_queues_of_all_who_had_a_lease() -> None:
    root = Broker(root="r", in_office=True)
    root.serving.took_office(["a", "b", "gone"], with_fronts=True)
    root.serving.turn(None)
    assert root.held.publishes_wait
    root.serving.received("a", Report(1, 0))
    root.serving.received("b", Report(1, -1, serves=False))
    assert not root.held.publishes_wait
    assert root.take_said() == [("a", Grant(1, 0))]
    # A broker that comes later is no reason to wait.
    root.serving.received("c", Report(1, 0))
    assert not root.held.publishes_wait


def test_publishes_wait_for_the_queues_of_the_roots_own_clients() -> None:
    root = Broker(root="r", in_office=True)
    root.serving.turn(5, attached=True)
    # To the last root, that is.
    root.serving.took_office([], with_fronts=True)
    assert root.held.publishes_wait
    root.serving.turn(5, attached=False)
    assert root.held.publishes_wait
    root.serving.turn(5, attached=True)
    assert not root.held.publishes_wait


def test_publishes_do_not_wait_for_longer_than_a_lease() -> None:
    root = Broker(root="r", in_office=True)
    root.serving.took_office(["a"], with_fronts=True)
    root.serving.turn(5, attached=False)
    assert root.held.publishes_wait
    root.serving.note_time(10_000 + LEASE_MS * 11 // 10)
    root.serving.turn(5, attached=False)
    assert not root.held.publishes_wait


def test_where_nobody_has_clients_of_its_own_nothing_waits_for_them() -> None:
    root = Broker(root="r", in_office=True)
    root.serving.took_office(["a"], with_fronts=False)
    root.serving.turn(None)
    assert not root.held.publishes_wait
