"""What is published anywhere reaches each private queue that is bound to it once, in order, on whichever broker it is
(R30, P4); and what was confirmed has reached all that were there before it was published.

Not what comes while a broker's way to a living root is broken: that is as for a subscriber whose connection breaks. So
where the network or machines falter, only those are counted whose way to the root has stayed the same; until all is
well again, and everybody has a way from which on it has to hear everything.

The same holds on a broker that is no member, or was none not long ago: it may hear of a new root only with the next
greeting (`replica.limits.GREETING_MS`), and a new root does not wait longer than a lease for others to bind their
private queues (`node.serving`). So its way is broken for a while, though nobody is dead. Who stays a member hears of a
root by its first entry: it has to hear everything, whoever else comes or goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.cluster.proxy.front import Front
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Ledger, Message

if TYPE_CHECKING:
    from pandomq.cluster.proxy.trunk import Trunk
    from pandomq.sim.agenda import Agenda
    from pandomq.sim.cable import Cable
    from pandomq.sim.machine import Machine

PROMISE: Final = "subscribers hear everything once"
FALTERING: Final = frozenset(("split", "one way", "tangle", "clog", "storm", "pause", "stall", "slow", "full"))
"""Faults that may break the way between two brokers that live."""
MEMBERS: Final = "members"
LINKING_MS: Final = 1_000
"""Within so much time who has become a member is linked to all others, and knows who is root."""


class Subscription:
    def __init__(self, name: str, cable: Cable, since_ms: int) -> None:
        self.name = name
        self.cable = cable
        self.broker = cable.machine.name
        self.since_ms = since_ms
        self.last: dict[int, int] = {}
        """By the publisher's channel: the last number that was heard."""
        self.messages: set[Message] = set()
        self.way = self._way()

    def _trunk(self) -> Trunk | None:
        """None of who is at the root itself, or nowhere any more."""
        client = None if self.cable.link is None else self.cable.link.client
        front = None if client is None else client.broker
        return front.trunks.get(client.vhost) if isinstance(front, Front) and client is not None else None

    @property
    def _is_over(self) -> bool:
        """For the broker; the client may have to hear of it yet."""
        return self.cable.link is None or self.cable.link.client is None

    def _way(self) -> object:
        trunk = self._trunk()
        return None if trunk is None else trunk.tunnel

    @property
    def is_known(self) -> bool:
        """At the root, as far as the broker knows."""
        trunk = self._trunk()
        return not self._is_over and (trunk is None or trunk.settled)

    def begin_anew(self, now_ms: int) -> None:
        """From now on it is to hear everything, by the way it has now."""
        self.way = self._way()
        self.since_ms = now_ms

    @property
    def undisturbed(self) -> bool:
        return not self._is_over and self._way() is self.way


class SubscriptionsKept(Checker):
    def __init__(self, ledger: Ledger, agenda: Agenda) -> None:
        super().__init__(ledger)
        self._agenda = agenda
        self._published: dict[Message, int] = {}
        """What is for all, and when it was published."""
        self._steady = False
        self._members_change = False
        self._known: set[str] = set()
        """Brokers that were ever members."""
        self._outside_ms: dict[str, int] = {}
        """By broker: when somebody last took it for no member."""

    def know_faults(self, kinds: Sequence[str]) -> None:
        self._steady = FALTERING.isdisjoint(kinds)
        self._members_change = MEMBERS in kinds

    def stepped(self, machine: Machine) -> None:
        if not self._members_change or machine.replica is None:
            return
        names = machine.replica._core.membership.names
        if names:
            self._known |= names
            for name in (self._known | {machine.name}) - names:
                self._outside_ms[name] = self._agenda.now_ms

    def published(self, message: Message) -> None:
        if not message.queues:
            self._published[message] = self._agenda.now_ms

    def begin(self, name: str, cable: Cable) -> Subscription:
        return Subscription(name, cable, self._agenda.now_ms)

    def heard(self, subscription: Subscription, message: Message) -> None:
        last = subscription.last.get(message.channel, 0)
        if message.number <= last:
            how = "again" if message in subscription.messages else f"after number {last}"
            raise BrokenPromise(PROMISE, f"{subscription.name} heard {message} {how}")
        subscription.last[message.channel] = message.number
        subscription.messages.add(message)

    def missing(self, subscription: Subscription) -> list[Message]:
        """What it has to hear yet."""
        if not self._is_steady(subscription) and not subscription.undisturbed:
            return []
        return [
            message
            for message, at_ms in self._published.items()
            if at_ms >= subscription.since_ms and message.confirmed and message not in subscription.messages
        ]

    def _is_steady(self, subscription: Subscription) -> bool:
        """It hears everything, also while roots come and go."""
        outside_ms = self._outside_ms.get(subscription.broker)
        return self._steady and (outside_ms is None or outside_ms + LINKING_MS < subscription.since_ms)
