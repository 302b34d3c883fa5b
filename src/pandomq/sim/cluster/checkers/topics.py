"""A subscriber of a topic exchange receives the messages that its bindings match, once and in order per channel, and no
others.

A binding certainly exists from the answer to its bind until the subscriber asks to unbind it. It possibly exists from
the request to bind it until the answer to the unbind. The broker routes a message between its publish and its confirm;
the exact time is not visible from outside. So the subscriber has to receive a message if one binding that matches
certainly existed from the publish until the confirm; and it must not receive the message if no binding that matches
possibly existed at any time between the two.

The subscriptions that have to receive everything, also while roots change, are the same as for other private queues:
see `subscriptions`, and ADR 13. No subscription may receive a message that it must not receive.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.cluster.checkers.subscriptions import Subscription, SubscriptionsKept
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.cable import Cable

PROMISE: Final = "topic subscribers receive all matching messages"


@functools.cache
def matches(pattern: str, key: str) -> bool:
    """Matches as AMQP defines it; the empty key has no words. The implementation differs from the broker's."""
    return _match(pattern.split(".") if pattern else [], key.split(".") if key else [])


def _match(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_match(pattern[1:], words[count:]) for count in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _match(pattern[1:], words[1:])


class _Bound:
    """One binding since its bind was requested. Its fields number events of the checker."""

    def __init__(self, pattern: str, asked: int) -> None:
        self.pattern = pattern
        self.asked = asked
        self.answered: int | None = None
        self.unbinds = False
        """Whether the subscriber has asked to unbind it."""
        self.ended: int | None = None
        """The event at which the unbind was answered."""


class TopicSubscription(Subscription):
    def __init__(self, name: str, cable: Cable, since_ms: int, since: int) -> None:
        super().__init__(name, cable, since_ms)
        self.since = since
        """Messages that were published before this event do not count."""
        self.bound: dict[str, _Bound] = {}
        """By pattern: the bindings that the subscriber has made or requested."""
        self.past: list[_Bound] = []
        self.owed: dict[SentMessage, int] = {}
        """Messages that it has to receive, each with the event of its publish."""

    @property
    def is_behind_front(self) -> bool:
        """Whether a front serves the client. A root has a front, too, for clients from the time before its election."""
        return self._trunk() is not None

    def certainly_wants(self, key: str, since: int) -> bool:
        return any(
            one.answered is not None and one.answered < since and not one.unbinds and matches(one.pattern, key)
            for one in self.bound.values()
        )

    def possibly_wanted(self, key: str, since: int, until: int) -> bool:
        return any(
            one.asked < until and (one.ended is None or one.ended > since) and matches(one.pattern, key)
            for one in (*self.bound.values(), *self.past)
        )


class TopicsKept(Checker):
    def __init__(self, ledger: WorldLedger, subscriptions: SubscriptionsKept) -> None:
        """`subscriptions` knows which of them have to receive everything."""
        super().__init__(ledger)
        self._subscriptions = subscriptions
        self._event = 0
        self._announced: dict[SentMessage, tuple[str, int]] = {}
        """Each message's key, and the event of its publish."""
        self._confirmed: dict[SentMessage, int] = {}
        self._alive: dict[TopicSubscription, None] = {}

    def _now(self) -> int:
        self._event += 1
        return self._event

    # Subscriptions.

    def begin(self, name: str, cable: Cable) -> TopicSubscription:
        subscription = TopicSubscription(name, cable, self._subscriptions.watch(cable), self._now())
        self._alive[subscription] = None
        return subscription

    def begin_anew(self, subscription: TopicSubscription) -> None:
        """From now on it has to receive everything, over its current path to the root."""
        subscription.begin_anew(self._subscriptions.now_ms)
        subscription.since = self._now()

    def end(self, subscription: TopicSubscription) -> None:
        del self._alive[subscription]

    def bind_asked(self, subscription: TopicSubscription, pattern: str) -> None:
        subscription.bound[pattern] = _Bound(pattern, self._now())

    def bind_answered(self, subscription: TopicSubscription, pattern: str) -> None:
        subscription.bound[pattern].answered = self._now()

    def unbind_asked(self, subscription: TopicSubscription, pattern: str) -> None:
        subscription.bound[pattern].unbinds = True

    def unbind_answered(self, subscription: TopicSubscription, pattern: str) -> None:
        bound = subscription.bound.pop(pattern)
        bound.ended = self._now()
        subscription.past.append(bound)

    # Messages.

    def announced(self, message: SentMessage, key: str) -> None:
        self._announced[message] = (key, self._now())

    def confirmed(self, message: SentMessage, machine: Machine) -> None:
        if message not in self._announced:
            return
        self._confirmed[message] = self._now()
        key, since = self._announced[message]
        for subscription in self._alive:
            if subscription.certainly_wants(key, since):
                subscription.owed[message] = since

    def received(self, subscription: TopicSubscription, message: SentMessage, key: str) -> None:
        published, since = self._announced.get(message, (None, 0))
        if published != key:
            raise BrokenPromise(PROMISE, f"{subscription.name} got {message} with key {key!r}, not {published!r}")
        if not subscription.possibly_wanted(key, since, self._confirmed.get(message, self._event + 1)):
            raise BrokenPromise(PROMISE, f"{subscription.name} got {message}, and nothing was bound to {key!r}")
        self._subscriptions.heard(subscription, message)

    def missing(self, subscription: TopicSubscription) -> list[SentMessage]:
        if not subscription.owed or not self._subscriptions.counts(subscription):
            return []
        return [
            message
            for message, since in subscription.owed.items()
            if since > subscription.since and message.confirmed and message not in subscription.messages
        ]
