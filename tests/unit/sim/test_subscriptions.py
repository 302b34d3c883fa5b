"""The subscribers that have to receive everything that is confirmed, also while roots change (ADR 13)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pandomq.sim.agenda import Agenda
from pandomq.sim.cluster.checkers.subscriptions import SubscriptionsKept
from pandomq.sim.ledger import SentMessage, WorldLedger


class Scene:
    """No subscriber ever gets anything here, and none has a trunk that has stayed the same."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.checker = SubscriptionsKept(WorldLedger(), self.agenda)
        self.checker.know_faults(["kill"], calm=True)
        self._number = 0

    def subscribe(self, broker: str) -> Any:
        return self.checker.begin("subscriber", self._cable(broker))

    @staticmethod
    def _cable(broker: str) -> Any:
        return SimpleNamespace(machine=SimpleNamespace(name=broker), link=None)

    def elect(self, broker: str, term: int, *linked: str) -> None:
        knowledge = SimpleNamespace(term=term)
        peers = SimpleNamespace(life=SimpleNamespace(took_over=True), linked=set(linked), knowledge=knowledge)
        machine: Any = SimpleNamespace(name=broker, node=SimpleNamespace(peers=peers), replica=None)
        self.checker.stepped(machine)

    def confirm(self) -> SentMessage:
        self._number += 1
        message = SentMessage(1, self._number, (), False, 0, None, 1, self.agenda.now_ms)
        self.checker.published(message)
        message.confirmed = True
        return message

    def pause(self, broker: str, for_ms: int) -> None:
        machine: Any = SimpleNamespace(name=broker)
        self.checker.paused(machine, for_ms)


def test_a_new_root_waits_for_brokers_to_which_it_has_a_link() -> None:
    scene = Scene()
    near, far = scene.subscribe("n2"), scene.subscribe("n3")
    scene.elect("n1", 1, "n2", "n3")
    first = scene.confirm()
    assert scene.checker.missing(near) == scene.checker.missing(far) == [first]
    scene.agenda.run(10)
    scene.elect("n4", 2, "n2")
    assert scene.checker.missing(near) == [first]
    assert scene.checker.missing(far) == [], "the new root cannot know of it"


def test_a_subscription_that_begins_under_the_new_root_counts() -> None:
    scene = Scene()
    scene.subscribe("n3")
    scene.elect("n4", 2)
    scene.agenda.run(10)
    late = scene.subscribe("n3")
    # A root that stays in office makes nobody wait again.
    scene.elect("n4", 2)
    message = scene.confirm()
    assert scene.checker.missing(late) == [message]


def test_a_secondary_whose_process_stops_is_excused_until_it_goes_on() -> None:
    scene = Scene()
    before = scene.subscribe("s1")
    scene.elect("n1", 1, "s1")
    scene.pause("s1", 200)
    scene.confirm()
    assert scene.checker.missing(before) == []
    scene.agenda.run(201)
    after = scene.subscribe("s1")
    second = scene.confirm()
    assert scene.checker.missing(after) == [second]
    assert scene.checker.missing(before) == []


def test_a_subscription_from_before_a_standstill_is_excused() -> None:
    """Each end of its path may close it afterwards: it received nothing for too long."""
    scene = Scene()
    scene.agenda.run(10)
    before = scene.subscribe("n2")
    scene.agenda.leap(3_600_000)
    scene.checker.ledger.last_leap_ms = scene.agenda.now_ms
    scene.confirm()
    assert scene.checker.missing(before) == []
    scene.agenda.run(scene.agenda.now_ms + 1)
    scene.checker.begin_anew(before)
    second = scene.confirm()
    assert scene.checker.missing(before) == [second]


def test_a_message_that_was_published_earlier_in_the_same_millisecond_does_not_count() -> None:
    scene = Scene()
    scene.confirm()
    subscription = scene.subscribe("n2")
    assert scene.checker.missing(subscription) == []
    message = scene.confirm()
    assert scene.checker.missing(subscription) == [message]
    scene.checker.begin_anew(subscription)
    assert scene.checker.missing(subscription) == []
