"""The messages between brokers about serving clients, when another broker is the root."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pandomq.broker.log.commands import NoteHosts
from pandomq.broker.log.held_replies import HeldReplies
from pandomq.cluster.serving import Grant, Report, decode_serving
from pandomq.node.front.host_records import HOSTS_MAX
from pandomq.node.front.serving import Serving
from pandomq.node.front.serving_leases import SILENT_MS

LEASE_MS = 1000


def replication(root: str | None, *, is_root: bool) -> Any:
    """As much of it as it takes."""
    knowledge = SimpleNamespace(root=root, term=1)
    life = SimpleNamespace(took_over=is_root)
    return SimpleNamespace(life=life, serving=is_root, linked={"a", "b"}, knowledge=knowledge)


class State:
    """As much of the shared state."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self.hosts = set(hosts)

    def apply(self, command: NoteHosts) -> None:
        self.hosts = (self.hosts | set(command.added)) - set(command.removed)


class Broker:
    """One of them, with its lips read."""

    def __init__(
        self, *, root: str | None = "r", is_root: bool = False, hosts: Iterable[str] = ("a", "b", "c")
    ) -> None:
        """`hosts` are the names in the log."""
        self.replication = replication(root, is_root=is_root)
        self.held = HeldReplies()
        self.index = 0
        self.said: list[tuple[str, Any]] = []
        self.state = State(hosts)
        self.serving = Serving(self.replication, cast(Any, self), LEASE_MS, self._send)
        self.serving.note_time(10_000)

    def log(self, command: NoteHosts) -> None:
        self.state.apply(command)

    def commit(self) -> None:
        """The log takes what was written, and commits it."""
        self.index += 1
        self.held.sealed(self.index)
        self.held.committed(self.index)

    def _send(self, name: str, data: bytes) -> None:
        self.said.append((name, decode_serving(data)))

    def take_said(self) -> list[tuple[str, Any]]:
        said, self.said = self.said, []
        return said


def test_a_broker_sends_no_report_to_a_new_root_before_its_private_queues_are_bound_there() -> None:
    broker = Broker()
    broker.serving.turn(5, attached=True)
    assert broker.take_said() == [("r", Report(1, 5))]
    broker.serving.received("r", Grant(1, 5))
    assert broker.serving.holds
    # With the same root a trunk that comes later is no reason to be silent.
    broker.serving.turn(6, attached=False)
    assert broker.take_said() == [("r", Report(2, 6, attached=False))]
    broker.replication.knowledge.root = "s"
    broker.serving.turn(6, attached=False)
    assert broker.take_said() == []
    broker.serving.turn(6, attached=True)
    assert broker.take_said() == [("s", Report(3, 6))]
    assert not broker.serving.holds
    # The same broker in another term knows nothing of what it knew.
    broker.serving.received("s", Grant(3, 6))
    assert broker.serving.holds
    broker.replication.knowledge.term = 3
    broker.serving.turn(6, attached=False)
    assert broker.take_said() == []
    assert not broker.serving.holds


def test_a_broker_sends_a_report_at_least_once_per_lease() -> None:
    broker = Broker()
    broker.serving.turn(5, attached=False)
    broker.serving.note_time(10_000 + LEASE_MS - 1)
    broker.serving.turn(5, attached=False)
    assert broker.take_said() == []
    broker.serving.note_time(10_000 + LEASE_MS)
    broker.serving.turn(5, attached=False)
    assert broker.take_said() == [("r", Report(1, 5, attached=False))]
    # The root may be waiting for that.
    broker.serving.turn(5, attached=True)
    assert broker.take_said() == [("r", Report(2, 5))]
    broker.serving.turn(5, attached=True)
    assert broker.take_said() == []


@pytest.mark.proves("R31")
def test_publishes_wait_for_the_queues_of_all_brokers_that_had_a_lease() -> None:
    root = Broker(root="r", is_root=True)
    root.serving.took_over(["a", "b", "gone"], with_fronts=True)
    root.serving.turn(None)
    assert root.held.publishes_wait
    root.serving.received("a", Report(1, 0))
    root.serving.received("b", Report(1, -1, serves=False))
    assert not root.held.publishes_wait
    assert root.take_said() == [("a", Grant(1, 0))]
    # A broker that comes later is no reason to wait.
    root.serving.received("c", Report(1, 0))
    assert not root.held.publishes_wait


@pytest.mark.proves("R31")
def test_publishes_wait_for_a_broker_without_a_report_since_a_lease_before_the_root_served() -> None:
    """The root is known by its first entry, and serves when that is committed, which may take longer than a lease."""
    root, broker = Broker(root="r", is_root=True), Broker()
    broker.serving.turn(5, attached=False)
    broker.serving.note_time(10_000 + LEASE_MS)
    root.serving.note_time(10_000 + LEASE_MS)
    root.serving.took_over(["a"], with_fronts=True)
    root.serving.turn(None)
    broker.serving.turn(5, attached=False)
    ((_, report),) = broker.take_said()
    root.serving.received("a", report)
    assert root.take_said() == [("a", Grant(1, 0))]
    assert root.held.publishes_wait
    broker.serving.turn(5, attached=True)
    ((_, report),) = broker.take_said()
    root.serving.received("a", report)
    assert not root.held.publishes_wait
    # A private queue that comes later is no reason to wait again.
    root.serving.received("a", Report(3, 5, attached=False))
    assert not root.held.publishes_wait


def test_publishes_wait_for_the_queues_of_the_roots_own_clients() -> None:
    root = Broker(root="r", is_root=True)
    root.serving.turn(5, attached=True)
    # To the last root, that is.
    root.serving.took_over([], with_fronts=True)
    assert root.held.publishes_wait
    root.serving.turn(5, attached=False)
    assert root.held.publishes_wait
    root.serving.turn(5, attached=True)
    assert not root.held.publishes_wait


def test_publishes_do_not_wait_for_longer_than_a_lease() -> None:
    root = Broker(root="r", is_root=True)
    root.serving.took_over(["a"], with_fronts=True)
    root.serving.turn(5, attached=False)
    assert root.held.publishes_wait
    root.serving.note_time(10_000 + LEASE_MS * 11 // 10)
    root.serving.turn(5, attached=False)
    assert not root.held.publishes_wait


def test_publishes_do_not_wait_where_no_broker_serves_clients_of_its_own() -> None:
    root = Broker(root="r", is_root=True)
    root.serving.took_over(["a"], with_fronts=False)
    root.serving.turn(None)
    assert not root.held.publishes_wait


@pytest.mark.proves("R16")
def test_a_broker_gets_its_first_lease_when_every_later_root_knows_of_it() -> None:
    root = Broker(root="r", is_root=True, hosts=())
    root.serving.took_over([], with_fronts=True)
    root.serving.received("a", Report(1, 0))
    assert root.take_said() == [] and root.state.hosts == {"a"}
    root.serving.received("a", Report(2, 0))
    assert root.take_said() == [], "the name is not committed yet"
    root.commit()
    assert root.take_said() == [("a", Grant(2, 0))], "the last request, which was not answered"
    root.serving.received("a", Report(3, 0))
    assert root.take_said() == [("a", Grant(3, 0))]
    # The next root knows the name from its log, and grants at once.
    second = Broker(root="s", is_root=True, hosts=root.state.hosts)
    second.serving.took_over(["a"], with_fronts=True)
    second.serving.received("a", Report(4, 0))
    assert second.take_said() == [("a", Grant(4, 0))]


@pytest.mark.proves("R16")
@pytest.mark.parametrize("how", ["it says so", "it is silent"])
def test_a_broker_that_serves_no_clients_any_more_is_forgotten(how: str) -> None:
    root = Broker(root="r", is_root=True, hosts=("a",))
    root.serving.took_over(["a"], with_fronts=True)
    root.serving.received("a", Report(1, 0))
    root.take_said()
    end_ms = 10_000 + LEASE_MS * 11 // 10
    if how == "it says so":
        end_ms = 10_000
        root.serving.received("a", Report(2, -1, serves=False))
    root.serving.note_time(end_ms)
    root.serving.turn(None)
    root.serving.note_time(end_ms + SILENT_MS - 1)
    root.serving.turn(None)
    assert root.state.hosts == {"a"}, "clients may come back soon"
    root.serving.note_time(end_ms + SILENT_MS)
    root.serving.turn(None)
    assert root.state.hosts == set()
    root.serving.received("a", Report(3, 0))
    assert root.take_said() == [], "it is recorded again first"
    root.commit()
    assert root.take_said() == [("a", Grant(3, 0))]


@pytest.mark.proves("R16")
def test_a_broker_that_is_forgotten_and_recorded_again_waits_for_the_second_record() -> None:
    """Between the two, the log has the record that removes its name."""
    root = Broker(root="r", is_root=True, hosts=())
    root.serving.took_over([], with_fronts=True)
    root.serving.received("a", Report(1, 0))
    root.held.sealed(1)
    root.serving.received("a", Report(2, -1, serves=False))
    root.serving.note_time(10_000 + SILENT_MS)
    root.serving.turn(None)
    root.serving.received("a", Report(3, 0))
    root.held.sealed(2)
    root.held.committed(1)
    assert root.take_said() == []
    root.held.committed(2)
    assert root.take_said() == [("a", Grant(3, 0))]


@pytest.mark.proves("R16")
def test_a_new_root_waits_for_hosts_that_it_has_never_met() -> None:
    root = Broker(root="r", is_root=True, hosts=("a", "far", "r"))
    elections = SimpleNamespace(kept=[])
    membership = SimpleNamespace(names={"r", "p"})
    root.replication.knowledge = SimpleNamespace(
        root="r", term=1, advertised={}, elections=elections, membership=membership
    )
    assert root.serving.hosts_before("r") == {"a", "b", "far", "p"}


def test_only_so_many_brokers_have_clients_of_their_own() -> None:
    hosts = [f"h{number}" for number in range(HOSTS_MAX)]
    root = Broker(root="r", is_root=True, hosts=hosts)
    root.serving.took_over(hosts, with_fronts=True)
    root.serving.received("more", Report(1, 0))
    root.serving.received(hosts[0], Report(1, 0))
    assert root.take_said() == [(hosts[0], Grant(1, 0))]
    assert len(root.state.hosts) == HOSTS_MAX
