"""No broker serves clients without what clients of others were told is in force."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pandomq.cluster.serving import BadServingMessage, Grant, Report, decode_serving, encode_serving
from pandomq.kernel import NEVER_MS
from pandomq.node.front.serving_leases import EVERYTHING, NOTHING, FrontLease, ServingLeases
from tests.support.examples import examples

LEASE_MS = 1000


def test_a_broker_that_serves_alone_does_not_wait() -> None:
    leases = ServingLeases(LEASE_MS)
    assert leases.applied_everywhere(0) == EVERYTHING
    assert leases.next_ms == NEVER_MS


@pytest.mark.proves("R16", "C2")
def test_a_change_is_settled_when_all_serving_brokers_have_it_or_their_leases_ended() -> None:
    leases = ServingLeases(LEASE_MS)
    assert leases.heard("a", Report(1, 5), 4, 0) == Grant(1, 4)
    assert leases.heard("b", Report(7, 3), 4, 100) == Grant(7, 4)
    assert leases.applied_everywhere(100) == 3
    leases.heard("b", Report(8, 9), 4, 200)
    assert leases.applied_everywhere(200) == 5
    assert leases.next_ms == 1100
    assert leases.applied_everywhere(1099) == 5
    assert leases.applied_everywhere(1100) == 9
    assert leases.heard("b", Report(9, 9, serves=False), 4, 1200) is None
    assert leases.applied_everywhere(1200) == EVERYTHING


def test_a_new_root_waits_for_brokers_that_have_not_reported() -> None:
    leases = ServingLeases(LEASE_MS)
    leases.begin(["a", "b"], 0)
    assert leases.applied_everywhere(0) == NOTHING
    leases.heard("a", Report(1, 5), 4, 10)
    leases.heard("b", Report(1, NOTHING, serves=False), 4, 20)
    assert leases.applied_everywhere(20) == 5


def test_a_lease_counts_from_the_question() -> None:
    lease = FrontLease(LEASE_MS)
    assert lease.ask_at("r") == 0
    report = lease.ask("r", 5, 100)
    assert lease.ask_at("r") == 350
    assert not lease.holds(5, 100)
    lease.granted("r", Grant(report.question, 5))
    assert lease.holds(5, 1099)
    assert not lease.holds(5, 1100)


def test_a_lease_is_of_no_use_before_all_is_applied_that_others_know_of() -> None:
    lease = FrontLease(LEASE_MS)
    lease.granted("r", Grant(lease.ask("r", 5, 0).question, 7))
    assert not lease.holds(6, 1)
    assert lease.holds(7, 1)
    lease.granted("r", Grant(lease.ask("r", 7, 500).question, 9))
    assert lease.holds(7, 999)
    assert not lease.holds(7, 1000)
    assert lease.holds(9, 1000)


def test_with_another_root_the_lease_ends() -> None:
    lease = FrontLease(LEASE_MS)
    lease.granted("r", Grant(lease.ask("r", 5, 0).question, 5))
    late = lease.ask("r", 5, 10)
    assert lease.ask_at("s") == 0
    lease.ask("s", 5, 20)
    assert not lease.holds(5, 20)
    lease.granted("r", Grant(late.question, 5))
    assert not lease.holds(5, 20)


def test_answers_that_are_late_or_doubled_change_nothing() -> None:
    lease = FrontLease(LEASE_MS)
    first, second = lease.ask("r", 5, 0), lease.ask("r", 5, 100)
    lease.granted("r", Grant(second.question, 5))
    lease.granted("r", Grant(first.question, 5))
    lease.granted("r", Grant(second.question, 5))
    assert lease.holds(5, 1099)
    assert not lease.holds(5, 1100)
    assert lease.leave() == Report(second.question, NOTHING, serves=False)


@pytest.mark.parametrize(
    "message", [Report(1, 2), Report(3, -1, serves=False), Report(1, 2, attached=False), Grant(4, 5)]
)
def test_messages_are_decoded_as_they_were_encoded(message: Report | Grant) -> None:
    assert decode_serving(encode_serving(message)) == message


@pytest.mark.parametrize("data", [b"", b"\x02\x93\x01\x01\x01", b"\x01", b"\x01\xc0"])
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(BadServingMessage):
        decode_serving(data)


def test_reports_of_earlier_and_later_versions_are_decoded() -> None:
    assert decode_serving(b"\x01" + msgspec.msgpack.encode([1, 7, 5, True])) == Report(7, 5)
    assert decode_serving(b"\x01" + msgspec.msgpack.encode([1, 7, 5, True, False, "later"])) == Report(
        7, 5, attached=False
    )


class Brokers(RuleBasedStateMachine):
    """A root, three brokers that serve, clocks of different speed, and a network that delays and loses."""

    names = ("a", "b", "c")
    speeds = (1.0, 1.04, 1.09, 1.0)

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.root_number = 0
        self.leases = ServingLeases(LEASE_MS)
        self.committed = 0
        self.told = 0
        """Clients were told of changes up to this one."""
        self.fronts = {name: FrontLease(LEASE_MS) for name in self.names}
        self.applied = dict.fromkeys(self.names, 0)
        self.questions: list[tuple[str, str, Report]] = []
        self.answers: list[tuple[str, str, Grant]] = []

    def clock(self, who: str | None) -> int:
        number = (self.root_number % 2) * 3 if who is None else self.names.index(who)
        return int(self.now_ms * self.speeds[number])

    @property
    def root(self) -> str:
        return f"root {self.root_number}"

    @rule(milliseconds=st.sampled_from([1, 90, 249, 900, 920, 999]))
    def time_passes(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    @rule()
    def something_is_declared(self) -> None:
        self.committed += 1

    @rule(name=st.sampled_from(names))
    def apply(self, name: str) -> None:
        self.applied[name] = self.committed

    @rule(name=st.sampled_from(names))
    def ask(self, name: str) -> None:
        report = self.fronts[name].ask(self.root, self.applied[name], self.clock(name))
        self.questions.append((name, self.root, report))

    @rule(name=st.sampled_from(names))
    def get_a_lease(self, name: str) -> None:
        self.ask(name)
        while self.questions:
            self.a_question_arrives(lost=False)
        while self.answers:
            self.an_answer_arrives(lost=False)

    @rule(lost=st.booleans())
    def a_question_arrives(self, lost: bool) -> None:
        if self.questions:
            name, root, report = self.questions.pop(0)
            # A root whose own lease is over answers nobody.
            if not lost and root == self.root:
                grant = self.leases.heard(name, report, self.told, self.clock(None))
                assert grant is not None
                self.answers.append((name, root, grant))

    @rule(lost=st.booleans())
    def an_answer_arrives(self, lost: bool) -> None:
        if self.answers:
            name, root, grant = self.answers.pop(0)
            if not lost:
                self.fronts[name].granted(root, grant)

    @rule()
    def another_root(self) -> None:
        self.root_number += 1
        self.leases = ServingLeases(LEASE_MS)
        self.leases.begin(self.names, self.clock(None))

    @invariant()
    def nobody_serves_without_it(self) -> None:
        self.told = max(self.told, min(self.committed, self.leases.applied_everywhere(self.clock(None))))
        for name, front in self.fronts.items():
            if front.holds(self.applied[name], self.clock(name)):
                assert self.applied[name] >= self.told


Brokers.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=60)
TestBrokers = Brokers.TestCase
