"""What a broker knows of its cluster beside the log: who is root, who the members are, what is wrong, what was asked.

The log of the process hears of each change. Who asked for one (`asked`) is told how it ended, in the order of asking.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from pandomq.node.elections import Elections
from pandomq.node.loads import Loads
from pandomq.replica.effects import Alarm, AlarmKind, ChangeEnded, MembersChanged
from pandomq.replica.membership import Membership
from pandomq.replica.messages import Append, Message
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pandomq.ids import NodeName, Term
    from pandomq.replica.view import PeerView

log = logging.getLogger("pandomq")

OnEnded = Callable[[bool, str], None]
"""Whether what was asked for was done, and what there is to say about it."""
Trace = Callable[..., None]
"""What happened, and the facts of it."""


def _untraced(event: str, **facts: object) -> None:
    pass


class ClusterNotices:
    __slots__ = (
        "_asked",
        "_in_sync",
        "_trace",
        "advertised",
        "alarms",
        "changed",
        "committed_elsewhere",
        "data",
        "elections",
        "followed",
        "loads",
        "membership",
        "now_ms",
        "resignation",
        "role",
        "root",
        "successor",
        "term",
    )

    def __init__(self, trace: Trace = _untraced) -> None:
        """`trace` hears what happens."""
        self._trace = trace
        self.now_ms = 0
        """The time of day, for those who read of elections."""
        self.elections = Elections()
        self.role = Role.RECOVERING
        self.term = 0
        self.root: NodeName | None = None
        self.membership = Membership(())
        self.advertised: dict[str, str] = {}
        """Where brokers say that clients find them."""
        self.data: dict[str, tuple[str, str]] = {}
        """Where brokers say that their data ports are, without TLS and with it; empty where there is none."""
        self.loads = Loads()
        self.alarms: dict[AlarmKind, str] = {}
        self.committed_elsewhere = 0
        """How far the root has said that the log is committed."""
        self.resignation: str | None = None
        """Why this broker gave up its office."""
        self.successor: NodeName | None = None
        """To whom, if it did so in somebody's favour."""
        self.followed = False
        """Another broker was root in this life: whatever this one becomes, the cluster has not been away."""
        self.changed = True
        """The root or the members are others than when this was last set to False."""
        self._asked: deque[OnEnded] = deque()
        self._in_sync: dict[str, bool] = {}
        """Of each backup, while this broker is root."""

    def role_changed(self, name: NodeName, role: Role, term: Term, root: NodeName | None) -> None:
        self.followed = self.followed or (root is not None and root != name)
        if (role, term, root) != (self.role, self.term, self.root):
            # Without enough others a backup stands again and again: that is no news.
            in_vain = Role.CANDIDATE in (role, self.role) and (term, root) == (self.term, self.root)
            level = logging.DEBUG if in_vain and role is not Role.ROOT else logging.INFO
            log.log(level, "broker %s is %s in term %d; the root is %s", name, role.value, term, root or "not known")
        self.role, self.term, self.root, self.changed = role, term, root, True
        self.elections.heard(root, term, self.now_ms)
        if role is not Role.ROOT:
            self._in_sync.clear()

    def took_office(self, name: str, term: int, *, handed_over: bool) -> None:
        elections = self.elections.kept
        self._trace(
            "elected",
            broker=name,
            term=term,
            before=elections[-2].root if len(elections) > 1 else None,
            handed_over=handed_over,
            without_root_ms=elections[-1].missing_ms if elections else 0,
            members=sorted(self.membership.names),
        )

    def watch(self, backups: Sequence[PeerView], linked: Collection[str]) -> None:
        """On a root, from time to time: who keeps up with it is worth a line."""
        for name in self._in_sync.keys() - {peer.name for peer in backups}:
            del self._in_sync[name]
        for peer in backups:
            before, now = self._in_sync.get(peer.name), peer.in_sync and peer.name in linked
            self._in_sync[peer.name] = now
            if now and not before:
                log.info("%s is in sync", peer.name)
                self._trace("in-sync", broker=peer.name, index=peer.synced_index)
            elif before and not now:
                log.warning("%s is no longer in sync: its copy ends at %d", peer.name, peer.synced_index)
                self._trace("out-of-sync", broker=peer.name, index=peer.synced_index)

    def heard(self, peer: str, message: Message) -> None:
        if isinstance(message, Append) and peer == self.root:
            self.committed_elsewhere = message.commit_index

    def advertise(self, name: str, address: str, data: tuple[str, str] = ("", "")) -> None:
        if address and self.advertised.get(name) != address:
            self.advertised[name], self.changed = address, True
        if self.data.get(name, ("", "")) != data:
            self.data[name], self.changed = data, True

    def forget(self, name: str) -> None:
        """It is gone, and was no member."""
        self.advertised.pop(name, None)
        self.data.pop(name, None)

    def ask(self, on_ended: OnEnded) -> None:
        """Said before the replica is asked; one ChangeEnded will answer."""
        self._asked.append(on_ended)

    def take(self, effect: Alarm | MembersChanged | ChangeEnded) -> None:
        self._trace_effect(effect)
        match effect:
            case Alarm(kind, True, text):
                self.alarms[kind] = text
                log.warning("cluster alarm: %s", text)
            case Alarm(kind, _, text):
                self.alarms.pop(kind, None)
                log.info("cluster alarm cleared: %s", text or kind.value)
            case MembersChanged(membership):
                self.membership, self.changed = membership, True
            case ChangeEnded(done, text):
                log.info("%s: %s", "done" if done else "refused", text)
                if self._asked:
                    self._asked.popleft()(done, text)
            case _:
                assert_never(effect)

    def _trace_effect(self, effect: Alarm | MembersChanged | ChangeEnded) -> None:
        match effect:
            case Alarm(kind, raised, text):
                self._trace("alarm-raised" if raised else "alarm-cleared", alarm=kind.value, text=text)
            case MembersChanged(membership):
                self._trace("members", members=sorted(membership.names))
            case ChangeEnded(done, text):
                self._trace("change", done=done, text=text)
            case _:
                assert_never(effect)

    def address_of(self, name: NodeName | None) -> str:
        """Where clients find it, or where it is dialed; empty if that is not known, either."""
        if name is None:
            return ""
        member = self.membership.members.get(name)
        return self.advertised.get(name) or ("" if member is None else member.address)

    @property
    def where_the_root_is(self) -> str:
        """For those who came to the wrong broker."""
        root = self.root or self.successor
        if root is None:
            return "no root is known at present"
        address = self.address_of(root)
        is_root = "the root is" if root == self.root else "the next root is"
        return f"{is_root} {root} at {address}" if address else f"{is_root} {root}"
