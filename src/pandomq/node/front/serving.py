"""Serving leases of one broker: as the root it grants them, and holds back replies about changes that are not in force
everywhere; as a broker with clients of its own it requests them (see `serving_leases`).

Times are monotonic. In each step `note_time` comes first, before other brokers' messages are handled; `turn` after
committed entries were given to the front, and before the front handles anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from pandomq.cluster.serving import Grant, Report, ServingMessage, encode_serving
from pandomq.kernel import NEVER_MS
from pandomq.node.front.host_records import HostRecords
from pandomq.node.front.serving_leases import FrontLease, ServingLeases

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.node.log.replication import Replication

Send = Callable[[str, bytes], None]

TOLD_PER_LEASE: Final = 20
"""How often per lease a broker without clients reports that to a root for which it may be new."""


class Serving:
    __slots__ = (
        "_applied_index",
        "_attached",
        "_awaited",
        "_held",
        "_hosts",
        "_lease_ms",
        "_leases",
        "_now_ms",
        "_own",
        "_replication",
        "_root_since_ms",
        "_root_term",
        "_said_unattached",
        "_send",
        "_telling_until_ms",
        "_told",
        "_told_ms",
        "_told_root",
        "_ungranted",
        "_waits_until_ms",
    )

    def __init__(self, replication: Replication, broker: Broker, lease_ms: int, send: Send) -> None:
        """`broker` is the one whose state is the log's; `send` takes a broker's name and a message."""
        self._hosts = HostRecords(broker, self._recorded)
        self._ungranted: dict[str, Grant] = {}
        """The last grant for each broker whose name is being written into the log."""
        self._replication = replication
        self._held = broker.held
        self._leases = ServingLeases(lease_ms)
        self._own = FrontLease(lease_ms)
        self._send = send
        self._now_ms = 0
        self._lease_ms = lease_ms
        self._told_root: str | None = None
        """The root that was notified that this broker serves no clients, when last, and until when it is notified
        again."""
        self._told_ms = self._telling_until_ms = 0
        self._applied_index: int | None = None
        """The applied index of the front; None if it serves no clients."""
        self._attached = True
        self._awaited: set[str] = set()
        self._waits_until_ms = 0
        """Publishes wait so long at most, and for these brokers, until they are attached or have no lease any more."""
        self._root_term: tuple[str, int] | None = None
        self._root_since_ms = 0
        """The root and its term, and since when they are known."""
        self._told = False
        """The root knows of this broker."""
        self._said_unattached = False
        """The last report to the root had `attached` false, so it may still let publishes wait for this broker."""

    def note_time(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def hosts_before(self, name: str) -> set[str]:
        """The brokers that may have had a lease from the root before this broker, which is root now. The log has the
        names; roots of version 0.1.0 wrote none."""
        knowledge = self._replication.knowledge
        known = {*knowledge.membership.names, *self._replication.linked, *knowledge.advertised}
        hosts = (known | self._hosts.names) - {name}
        heard = knowledge.elections.kept
        if len(heard) > 1 and heard[-2].term == knowledge.term - 1:
            # The last root itself served without a lease of this kind. If there may have been another one in between,
            # it is not known which.
            hosts.discard(heard[-2].root)
        return hosts

    def took_over(self, others: Iterable[str], *, with_fronts: bool) -> None:
        """To be called when this broker becomes root. These brokers may have leases from the last root, which is not
        among them. `with_fronts`: brokers of this cluster have clients of their own, and publishes wait for those that
        are up."""
        self._hosts.took_over()
        self._leases.begin(others, self._now_ms)
        # The root to which it was attached has been replaced.
        self._attached = self._applied_index is None
        self._awaited = self._replication.linked & set(self._leases.holders()) if with_fronts else set()
        self._waits_until_ms = self._now_ms + self._leases.length_ms if with_fronts else 0
        self._release()

    def received(self, name: str, message: ServingMessage) -> None:
        """Handles a message of another broker."""
        if not isinstance(message, Report):
            self._own.granted(name, message)
        elif self._replication.serving:
            if message.attached:
                self._awaited.discard(name)
            grant = self._leases.heard(name, message, self._held.settled_index, self._now_ms)
            self._release()
            if grant is None:
                self._ungranted.pop(name, None)
            elif self._hosts.ensure_recorded(name):
                self._send(name, encode_serving(grant))
            else:
                # The next root must know of the lease.
                self._ungranted[name] = grant

    def _recorded(self, name: str) -> None:
        grant = self._ungranted.pop(name, None)
        if grant is not None and self._replication.serving:
            self._send(name, encode_serving(grant))

    def turn(self, applied_index: int | None, *, attached: bool = True) -> None:
        """The front has applied changes up to this entry; None if there is none that has clients. `attached`: the root
        knows the bindings of its private queues, and its clients' acks. A new root gets no report before that."""
        self._attached = attached or applied_index is None
        news = applied_index != self._applied_index or (self._attached and self._said_unattached)
        self._applied_index = applied_index
        if self._replication.life.took_over:
            self._release()
            return
        root = self._replication.knowledge.root
        if root is None:
            self._own.give_up()
        elif self._must_be_silent(root):
            return
        elif applied_index is not None and (news or self._own.ask_at(root) <= self._now_ms):
            self._told, self._said_unattached = True, not self._attached
            report = self._own.ask(root, applied_index, self._now_ms, attached=self._attached)
            self._send(root, encode_serving(report))
        elif applied_index is None:
            self._say_nobody(root, news=news)

    def _must_be_silent(self, root: str) -> bool:
        """Whether this broker must send no report to this root yet. A new root waits for a broker that is not attached,
        but not longer than a lease, so a broker is silent for at most a lease. The root may need longer than that to
        commit its first entry and begin to serve; so a report says whether the broker is attached, and the root
        continues to wait for one that is not."""
        root_term = (root, self._replication.knowledge.term)
        if root_term != self._root_term:
            self._root_term, self._root_since_ms, self._told, self._said_unattached = (
                root_term,
                self._now_ms,
                False,
                False,
            )
            self._own.give_up()
            self._told_root = None
        is_late = self._now_ms >= self._root_since_ms + self._lease_ms
        return not (self._told or self._attached or is_late)

    def _say_nobody(self, root: str, *, news: bool) -> None:
        """Reports to the root that this broker serves no clients. A new root would wait for it otherwise: it cannot
        know which brokers had a lease from the last root. The report is sent several times, as it may be lost, or come
        too early."""
        if news or root != self._told_root:
            self._told_root, self._told_ms = root, self._now_ms
            self._telling_until_ms = self._now_ms + self._lease_ms
        elif self._now_ms >= self._telling_until_ms or self._now_ms < self._told_ms + self._lease_ms // TOLD_PER_LEASE:
            return
        self._told_ms = self._now_ms
        self._send(root, encode_serving(self._own.leave()))

    def _release(self) -> None:
        everywhere = self._leases.applied_everywhere(self._now_ms)
        if self._replication.serving:
            for name in self._leases.take_silent(self._now_ms):
                self._hosts.forget(name)
        if self._applied_index is not None:
            everywhere = min(everywhere, self._applied_index)
        self._held.applied_everywhere(everywhere)
        # Until all brokers that serve clients have bound their private queues, a publish would not reach those.
        self._held.let_publishes_wait(
            wait=self._now_ms < self._waits_until_ms
            and (not self._attached or not self._awaited.isdisjoint(self._leases.holders()))
        )

    @property
    def holds(self) -> bool:
        """Before each batch: whether the front may handle its clients' inputs. The root's own front serves while the
        root does."""
        if self._replication.life.took_over:
            return self._replication.serving
        return self._applied_index is not None and self._own.holds(self._applied_index, self._now_ms)

    @property
    def next_ms(self) -> int:
        """The time at which `turn` is needed, if nothing happens."""
        if self._replication.life.took_over:
            return self._leases.next_ms
        root = self._replication.knowledge.root
        return NEVER_MS if root is None or self._applied_index is None else self._own.ask_at(root)
