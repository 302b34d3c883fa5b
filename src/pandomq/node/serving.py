"""Serving leases of one broker: as the root it gives them, and holds back what is not in force everywhere; as a broker
with clients of its own it asks for them (see `serving_leases`).

Times are monotonic. In each step `note_time` comes first, before what others said is told; `turn` after committed
entries were given to the front, and before the front handles anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from pandomq.cluster.serving import Report, ServingMessage, encode_serving
from pandomq.kernel import NEVER_MS
from pandomq.node.serving_leases import FrontLease, ServingLeases

if TYPE_CHECKING:
    from pandomq.broker.held_replies import HeldReplies
    from pandomq.node.replication import Replication

Send = Callable[[str, bytes], None]

TOLD_PER_LEASE: Final = 20
"""How often a root is told by who serves nobody, while that may be news."""


class Serving:
    __slots__ = (
        "_applied_index",
        "_attached",
        "_awaited",
        "_held",
        "_lease_ms",
        "_leases",
        "_now_ms",
        "_office",
        "_office_ms",
        "_own",
        "_replication",
        "_send",
        "_telling_until_ms",
        "_told",
        "_told_ms",
        "_told_root",
        "_waits_until_ms",
    )

    def __init__(self, replication: Replication, held: HeldReplies, lease_ms: int, send: Send) -> None:
        """`held` are the replies of this process's main broker; `send` takes a broker's name and a parcel."""
        self._replication = replication
        self._held = held
        self._leases = ServingLeases(lease_ms)
        self._own = FrontLease(lease_ms)
        self._send = send
        self._now_ms = 0
        self._lease_ms = lease_ms
        self._told_root: str | None = None
        """Which root was told that this broker serves nobody, when last, and until when it is told again."""
        self._told_ms = self._telling_until_ms = 0
        self._applied_index: int | None = None
        """Of the front; None if it serves nobody."""
        self._attached = True
        self._awaited: frozenset[str] = frozenset()
        self._waits_until_ms = 0
        """Publishes wait so long at most, and for these."""
        self._office: tuple[str, int] | None = None
        self._office_ms = 0
        """Who is root, in which term, and since when that is known."""
        self._told = False
        """It knows of this broker."""

    def note_time(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def took_office(self, others: Iterable[str], *, with_fronts: bool) -> None:
        """This broker is root now; these may have leases from the last one, which is not among them. `with_fronts`:
        brokers of this cluster have clients of their own, and publishes wait for those that are there."""
        self._leases.begin(others, self._now_ms)
        # What it was attached to is no longer the root.
        self._attached = self._applied_index is None
        self._awaited = frozenset(self._replication.linked) if with_fronts else frozenset()
        self._waits_until_ms = self._now_ms + self._leases.length_ms if with_fronts else 0
        self._release()

    def received(self, name: str, message: ServingMessage) -> None:
        """From another broker."""
        if not isinstance(message, Report):
            self._own.granted(name, message)
        elif self._replication.serving:
            grant = self._leases.heard(name, message, self._held.settled_index, self._now_ms)
            self._release()
            if grant is not None:
                self._send(name, encode_serving(grant))

    def turn(self, applied_index: int | None, *, attached: bool = True) -> None:
        """The front has applied changes up to this entry; None if there is none that has clients. `attached`: the root
        knows what its private queues are bound to, and what was acked. A new root hears nothing from it before that."""
        self._attached = attached or applied_index is None
        news, self._applied_index = applied_index != self._applied_index, applied_index
        if self._replication.in_office:
            self._release()
            return
        root = self._replication.notices.root
        if root is None:
            self._own.give_up()
        elif self._must_be_silent(root):
            return
        elif applied_index is not None and (news or self._own.ask_at(root) <= self._now_ms):
            self._told = True
            self._send(root, encode_serving(self._own.ask(root, applied_index, self._now_ms)))
        elif applied_index is None:
            self._say_nobody(root, news=news)

    def _must_be_silent(self, root: str) -> bool:
        """A new root waits for who says nothing, but not longer than a lease; so nobody is silent for longer."""
        office = (root, self._replication.notices.term)
        if office != self._office:
            self._office, self._office_ms, self._told = office, self._now_ms, False
            self._own.give_up()
            self._told_root = None
        is_late = self._now_ms >= self._office_ms + self._lease_ms
        return not (self._told or self._attached or is_late)

    def _say_nobody(self, root: str, *, news: bool) -> None:
        """This broker serves nobody. A new root would wait for it otherwise: it cannot know who had a lease from the
        last one. Said several times, as it may be lost, or come too early."""
        if news or root != self._told_root:
            self._told_root, self._told_ms = root, self._now_ms
            self._telling_until_ms = self._now_ms + self._lease_ms
        elif self._now_ms >= self._telling_until_ms or self._now_ms < self._told_ms + self._lease_ms // TOLD_PER_LEASE:
            return
        self._told_ms = self._now_ms
        self._send(root, encode_serving(self._own.leave()))

    def _release(self) -> None:
        everywhere = self._leases.applied_everywhere(self._now_ms)
        if self._applied_index is not None:
            everywhere = min(everywhere, self._applied_index)
        self._held.applied_everywhere(everywhere)
        # Until all brokers that serve clients have bound what their clients want, a publish would not reach those.
        self._held.publishes_wait = self._now_ms < self._waits_until_ms and (
            not self._attached or not self._awaited.isdisjoint(self._leases.unheard())
        )

    @property
    def holds(self) -> bool:
        """Before each batch: whether the front may handle what its clients say. The root's own front serves while the
        root does."""
        if self._replication.in_office:
            return self._replication.serving
        return self._applied_index is not None and self._own.holds(self._applied_index, self._now_ms)

    @property
    def next_ms(self) -> int:
        """When `turn` is wanted, if nothing happens."""
        if self._replication.in_office:
            return self._leases.next_ms
        root = self._replication.notices.root
        return NEVER_MS if root is None or self._applied_index is None else self._own.ask_at(root)


def hosts_before(replication: Replication, name: str) -> set[str]:
    """Who may have had a lease from the root before this broker, which is one now."""
    notices = replication.notices
    hosts = {*notices.membership.names, *replication.linked, *notices.advertised} - {name}
    heard = notices.elections.kept
    if len(heard) > 1 and heard[-2].term == notices.term - 1:
        # The last root itself served by its office, which is over. If there may have been another one in between it is
        # not known who that was.
        hosts.discard(heard[-2].root)
    return hosts
