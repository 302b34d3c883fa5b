"""The messages that the simulator's subscribers of topic keys have to receive, and those that they must not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.agenda import Agenda
from pandomq.sim.cluster.checkers.subscriptions import SubscriptionsKept
from pandomq.sim.cluster.checkers.topics import TopicsKept, TopicSubscription, matches
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger

MACHINE: Any = SimpleNamespace(name="n1")


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("#", "", True),
        ("*", "", False),
        ("a.#", "a", True),
        ("a.#", "a.b.c", True),
        ("a.*", "a", False),
        ("#.b.#", "b", True),
        ("a.#.c", "a.c", True),
        ("a.*.c", "a.c", False),
        ("#.#", "", True),
        ("a", "a.b", False),
    ],
)
def test_keys_match_as_in_amqp(pattern: str, key: str, expected: bool) -> None:
    assert matches(pattern, key) is expected


class Scene:
    def __init__(self) -> None:
        ledger = WorldLedger()
        subscriptions = SubscriptionsKept(ledger, Agenda())
        subscriptions.know_faults(["kill"], calm=True)
        self.checker = TopicsKept(ledger, subscriptions)
        cable: Any = SimpleNamespace(machine=MACHINE, link=None)
        self.subscription: TopicSubscription = self.checker.begin("subscriber", cable)
        self._number = 0

    def bind(self, pattern: str) -> None:
        self.checker.bind_asked(self.subscription, pattern)
        self.checker.bind_answered(self.subscription, pattern)

    def unbind(self, pattern: str) -> None:
        self.checker.unbind_asked(self.subscription, pattern)
        self.checker.unbind_answered(self.subscription, pattern)

    def publish(self, key: str) -> SentMessage:
        self._number += 1
        message = SentMessage(1, self._number, (), False, 0, None, 0, 0)
        self.checker.announced(message, key)
        return message

    def confirm(self, message: SentMessage) -> None:
        message.confirmed = True
        self.checker.confirmed(message, MACHINE)

    @property
    def missing(self) -> list[SentMessage]:
        return self.checker.missing(self.subscription)


def test_a_message_is_missing_if_a_binding_was_there_from_its_publish_until_its_confirm() -> None:
    scene = Scene()
    scene.bind("a.#")
    message = scene.publish("a.b")
    assert not scene.missing
    scene.confirm(message)
    assert scene.missing == [message]
    scene.checker.received(scene.subscription, message, "a.b")
    assert not scene.missing
    with pytest.raises(BrokenPromise, match="again"):
        scene.checker.received(scene.subscription, message, "a.b")


def test_a_message_may_come_or_not_if_its_binding_came_or_went_meanwhile() -> None:
    scene = Scene()
    first = scene.publish("a")
    scene.bind("a")
    scene.confirm(first)
    second = scene.publish("a")
    scene.checker.unbind_asked(scene.subscription, "a")
    scene.confirm(second)
    assert not scene.missing
    scene.checker.unbind_answered(scene.subscription, "a")
    scene.checker.received(scene.subscription, first, "a")
    scene.checker.received(scene.subscription, second, "a")


def test_a_message_must_not_come_if_nothing_was_bound_between_its_publish_and_its_confirm() -> None:
    scene = Scene()
    early = scene.publish("a")
    scene.confirm(early)
    scene.bind("a")
    scene.unbind("a")
    late = scene.publish("a")
    scene.bind("b")
    for message in (early, late):
        with pytest.raises(BrokenPromise, match="nothing was bound"):
            scene.checker.received(scene.subscription, message, "a")
