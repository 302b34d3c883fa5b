"""A published message reaches each private queue that is bound to it once, in order, on any broker (R30, P4); and a
confirmed message has reached all queues that were bound before its publish.

Messages that arrive while a broker's path to a living root is broken are excepted: the subscriber is then in the
position of a client whose connection is broken. So where the network or machines have faults, only those subscriptions
are counted whose path to the root has stayed the same. When all faults are over, every subscription has a path from
which on it has to receive everything.

The exception also holds on a broker that is not a member, or was not until recently: it may learn of a new root only
with the next greeting (`replica.limits.GREETING_MS`), and a new root waits for others to bind their private queues no
longer than a lease (`node.serving`). So its path is broken for a while, although no broker is dead. A broker that stays
a member learns of a root by the root's first entry: its subscribers have to receive everything, whatever other brokers
do.

A new root waits only for brokers to which it has a link when it is elected (ADR 13): the path of any other broker to it
is broken until the link is made. The path of a secondary is broken while its process stops, which happens to
secondaries in every world. So are all paths when everything has stood still for longer than a broker may be silent.
Subscriptions that began before that are counted only while their path stays the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.cluster.proxy.front import Front
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger

if TYPE_CHECKING:
    from pandomq.cluster.proxy.private.trunk import Trunk
    from pandomq.node.log.replication import Replication
    from pandomq.sim.agenda import Agenda
    from pandomq.sim.machine import Machine
    from pandomq.sim.network.cable import Cable

PROMISE: Final = "subscribers receive everything once"
FALTERING: Final = frozenset(("pause", "stall", "slow", "full"))
"""Faults of machines that may break the path between two live brokers."""
MEMBERS: Final = "members"
LINKING_MS: Final = 1_000
"""Within this time a new member is linked to all others, and knows the root."""


class Subscription:
    def __init__(self, name: str, cable: Cable, since_ms: int) -> None:
        self.name = name
        self.cable = cable
        self.broker = cable.machine.name
        self.since_ms = since_ms
        self.publish_count = 0
        """The number of messages that were published before it began: several events may share a millisecond."""
        self.last: dict[int, int] = {}
        """By the publisher's channel: the last number that was received."""
        self.messages: set[SentMessage] = set()
        self.way = self._way()

    def _trunk(self) -> Trunk | None:
        """The trunk of the subscriber's front; None at the root itself, or without a connection."""
        client = None if self.cable.link is None else self.cable.link.client
        front = None if client is None else client.broker
        return front.trunks.get(client.vhost) if isinstance(front, Front) and client is not None else None

    @property
    def _is_over(self) -> bool:
        """Whether it is over for the broker; the client may not have been told yet."""
        return self.cable.link is None or self.cable.link.client is None

    def _way(self) -> object:
        trunk = self._trunk()
        return None if trunk is None else trunk.tunnel

    @property
    def is_known(self) -> bool:
        """Whether it is known at the root, as far as the broker knows."""
        trunk = self._trunk()
        return not self._is_over and (trunk is None or trunk.settled)

    def begin_anew(self, now_ms: int) -> None:
        """From now on it has to receive everything, over its current path."""
        self.way = self._way()
        self.since_ms = now_ms

    @property
    def undisturbed(self) -> bool:
        return not self._is_over and self._way() is self.way


class SubscriptionsKept(Checker):
    def __init__(self, ledger: WorldLedger, agenda: Agenda) -> None:
        super().__init__(ledger)
        self._agenda = agenda
        self._published: dict[SentMessage, int] = {}
        """Broadcasts, each with the number of messages that were published before it."""
        self._publish_count = 0
        self._steady = False
        self._members_change = False
        self._known: set[str] = set()
        """Brokers that were ever members."""
        self._outside_ms: dict[str, int] = {}
        """By broker: the time at which some broker last considered it no member."""
        self._apart_ms: dict[str, int] = {}
        """By broker: the time until which it last had no link to a newly elected root, or its process had stopped."""
        self._terms: dict[str, int] = {}
        """By broker: the term in which it was last seen as root."""
        self._brokers: set[str] = set()
        """Brokers that have, or had, subscribers."""

    def know_faults(self, kinds: Sequence[str], *, calm: bool) -> None:
        """`calm`: the network has no faults."""
        self._steady = calm and FALTERING.isdisjoint(kinds)
        self._members_change = MEMBERS in kinds

    def paused(self, machine: Machine, for_ms: int) -> None:
        """The process of a secondary stops for so long."""
        self._apart_ms[machine.name] = self._agenda.now_ms + for_ms

    def stepped(self, machine: Machine) -> None:
        if machine.node is not None and machine.node.peers.life.took_over:
            self._look_at_links(machine.name, machine.node.peers)
        if not self._members_change or machine.replica is None:
            return
        names = machine.replica._core.membership.names
        if names:
            self._known |= names
            for name in (self._known | {machine.name}) - names:
                self._outside_ms[name] = self._agenda.now_ms

    def _look_at_links(self, name: str, root: Replication) -> None:
        """Checks the links of a newly elected root."""
        if self._terms.get(name) != root.knowledge.term:
            self._terms[name] = root.knowledge.term
            for broker in self._brokers - root.linked - {name}:
                self._apart_ms[broker] = max(self._apart_ms.get(broker, 0), self._agenda.now_ms)

    def published(self, message: SentMessage) -> None:
        if not message.queues:
            self._published[message] = self._publish_count
            self._publish_count += 1

    @property
    def now_ms(self) -> int:
        return self._agenda.now_ms

    def watch(self, cable: Cable) -> int:
        """A subscription begins on this connection's broker. Returns the time."""
        self._brokers.add(cable.machine.name)
        return self._agenda.now_ms

    def begin(self, name: str, cable: Cable) -> Subscription:
        subscription = Subscription(name, cable, self.watch(cable))
        subscription.publish_count = self._publish_count
        return subscription

    def begin_anew(self, subscription: Subscription) -> None:
        """From now on it has to receive everything, over its current path to the root."""
        subscription.begin_anew(self._agenda.now_ms)
        subscription.publish_count = self._publish_count

    def heard(self, subscription: Subscription, message: SentMessage) -> None:
        last = subscription.last.get(message.channel, 0)
        if message.number <= last:
            how = "again" if message in subscription.messages else f"after number {last}"
            raise BrokenPromise(PROMISE, f"{subscription.name} received {message} {how}")
        subscription.last[message.channel] = message.number
        subscription.messages.add(message)

    def missing(self, subscription: Subscription) -> list[SentMessage]:
        """Returns the messages that it has yet to receive."""
        if not self.counts(subscription):
            return []
        return [
            message
            for message, position in self._published.items()
            if position >= subscription.publish_count and message.confirmed and message not in subscription.messages
        ]

    def counts(self, subscription: Subscription) -> bool:
        """Whether the subscription has to receive everything that is confirmed since it began."""
        return self._is_steady(subscription) or subscription.undisturbed

    def _is_steady(self, subscription: Subscription) -> bool:
        """Whether it receives everything, also while roots change."""
        outside_ms = self._outside_ms.get(subscription.broker)
        apart_ms = max(self._apart_ms.get(subscription.broker, -1), self.ledger.last_leap_ms)
        if not self._steady or apart_ms >= subscription.since_ms:
            return False
        return outside_ms is None or outside_ms + LINKING_MS < subscription.since_ms
