"""A broker's knowledge of its cluster beside the log: the root, the members, the problems, the pending requests.

Each change is written to the log of the process. The caller of `ask` gets the result of its request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.node.log.elections import Elections
from pandomq.node.peers.loads import Loads
from pandomq.replica.effects import Alarm, AlarmKind, ChangeEnded, MembersChanged, RequestNumber
from pandomq.replica.members.membership import Membership
from pandomq.replica.protocol.messages import Append, ReplicaMessage
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pandomq.ids import NodeName, Term
    from pandomq.replica.view import PeerView

log = logging.getLogger("pandomq")

OnEnded = Callable[[bool, str], None]
"""Called with the result of a request: whether it was done, and a text about it."""
Trace = Callable[..., None]
"""Called with an event and the facts of it."""
ROLE_TEXTS: Final = {
    Role.RECOVERING: ("recovering", "it reads its store"),
    Role.LEARNER: ("a learner", "it copies the log and does not vote"),
    Role.BACKUP: ("a backup", "it copies the log and votes"),
    Role.CANDIDATE: ("a candidate", "it requests votes"),
    Role.OBSERVER: ("a secondary", "it copies the log's configuration and never votes"),
}
"""Each role but that of the root in the log of the process, and what a broker does in this role."""


def _described(role: Role, term: Term, root: NodeName | None) -> str:
    if role is Role.ROOT:
        return f"the root (term {term})"
    noun, duty = ROLE_TEXTS[role]
    return f"{noun} (term {term}); {duty}; {'no root is known' if root is None else f'the root is {root}'}"


def _untraced(event: str, **facts: object) -> None:
    pass


class ClusterKnowledge:
    __slots__ = (
        "_asked",
        "_in_sync",
        "_trace",
        "advertised",
        "alarms",
        "changed",
        "cluster_id",
        "committed_elsewhere",
        "data",
        "elections",
        "followed",
        "loads",
        "membership",
        "now_ms",
        "role",
        "root",
        "step_down_reason",
        "successor",
        "term",
    )

    def __init__(self, trace: Trace = _untraced) -> None:
        """`trace` is called for each event."""
        self._trace = trace
        self.now_ms = 0
        """The time of day, for readers of the elections."""
        self.elections = Elections()
        self.cluster_id = ""
        """Empty while the broker belongs to none."""
        self.role = Role.RECOVERING
        self.term = 0
        self.root: NodeName | None = None
        self.membership = Membership(())
        self.advertised: dict[str, str] = {}
        """The addresses that brokers advertise to clients."""
        self.data: dict[str, tuple[str, str]] = {}
        """The addresses of the brokers' data ports, without TLS and with it; empty where there is none."""
        self.loads = Loads()
        self.alarms: dict[AlarmKind, str] = {}
        self.committed_elsewhere = 0
        """The index up to which the log is committed, according to the root."""
        self.step_down_reason: str | None = None
        """Why this broker stepped down."""
        self.successor: NodeName | None = None
        """The broker to which it handed over, if it did."""
        self.followed = False
        """Another broker was root while this node ran: whatever this one becomes, the cluster was not interrupted."""
        self.changed = True
        """The root or the members have changed since this was last set to False."""
        self._asked: dict[RequestNumber, OnEnded] = {}
        self._in_sync: dict[str, bool] = {}
        """Whether each backup is in sync, while this broker is root."""

    def stayed(self, told_ahead_ms: int | None) -> bool:
        """The cluster was not interrupted: this broker has followed another one, or received the cluster's time from
        one that has."""
        return self.followed or told_ahead_ms is not None

    def role_changed(self, name: NodeName, role: Role, term: Term, root: NodeName | None) -> None:
        self.followed = self.followed or (root is not None and root != name)
        if (role, term, root) != (self.role, self.term, self.root):
            # Without a majority a backup becomes candidate again and again: that is no news.
            in_vain = Role.CANDIDATE in (role, self.role) and (term, root) == (self.term, self.root)
            level = logging.DEBUG if in_vain and role is not Role.ROOT else logging.INFO
            log.log(level, "broker %s is now %s", name, _described(role, term, root))
        self.role, self.term, self.root, self.changed = role, term, root, True
        self.elections.heard(root, term, self.now_ms)
        if role is not Role.ROOT:
            self._in_sync.clear()

    def took_over(self, name: str, term: int, *, handed_over: bool) -> None:
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
        """To be called on a root periodically: logs which backups keep up with it."""
        for name in self._in_sync.keys() - {peer.name for peer in backups}:
            del self._in_sync[name]
        for peer in backups:
            before, now = self._in_sync.get(peer.name), peer.in_sync and peer.name in linked
            self._in_sync[peer.name] = now
            if now and not before:
                log.info("backup %s is in sync", peer.name)
                self._trace("in-sync", broker=peer.name, index=peer.synced_index)
            elif before and not now:
                log.warning(
                    "backup %s is no longer in sync: its copy of the log ends at entry %d", peer.name, peer.synced_index
                )
                self._trace("out-of-sync", broker=peer.name, index=peer.synced_index)

    def heard(self, peer: str, message: ReplicaMessage) -> None:
        if isinstance(message, Append) and peer == self.root:
            self.committed_elsewhere = message.commit_index

    def advertise(self, name: str, address: str, data: tuple[str, str] = ("", "")) -> None:
        if address and self.advertised.get(name) != address:
            self.advertised[name], self.changed = address, True
        if self.data.get(name, ("", "")) != data:
            self.data[name], self.changed = data, True

    def forget(self, name: str) -> None:
        """The broker has disconnected, and was no member."""
        self.advertised.pop(name, None)
        self.data.pop(name, None)

    def ask(self, request: RequestNumber, on_ended: OnEnded) -> None:
        """To be called before the effects of this request are handled; one ChangeEnded will answer it. Others may end
        before: a change of members waits for its new members, and a request made meanwhile may be refused at once."""
        self._asked[request] = on_ended

    def abandon_requests(self, reason: str) -> None:
        """To be called when this node ends. The callers of all pending requests are informed that the outcome is not
        known."""
        asked, self._asked = self._asked, {}
        for on_ended in asked.values():
            text = f"this broker restarts its state ({reason}), so the outcome of the request is not known"
            on_ended(False, f"{text}: check the members with `pandomq status`")

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
            case ChangeEnded(request, done, text):
                log.info("cluster change %s: %s", "done" if done else "refused", text)
                if (on_ended := self._asked.pop(request, None)) is not None:
                    on_ended(done, text)
            case _:
                assert_never(effect)

    def _trace_effect(self, effect: Alarm | MembersChanged | ChangeEnded) -> None:
        match effect:
            case Alarm(kind, raised, text):
                self._trace("alarm-raised" if raised else "alarm-cleared", alarm=kind.value, text=text)
            case MembersChanged(membership):
                self._trace("members", members=sorted(membership.names))
            case ChangeEnded(_, done, text):
                self._trace("change", done=done, text=text)
            case _:
                assert_never(effect)

    def address_of(self, name: NodeName | None) -> str:
        """The address at which clients find the broker, or at which it is dialed; empty if neither is known."""
        if name is None:
            return ""
        member = self.membership.members.get(name)
        return self.advertised.get(name) or ("" if member is None else member.address)

    @property
    def where_the_root_is(self) -> str:
        """The reply for clients that connected to the wrong broker."""
        root = self.root or self.successor
        if root is None:
            return "no root is known at present"
        address = self.address_of(root)
        is_root = "the root is" if root == self.root else "the next root is"
        return f"{is_root} {root} at {address}" if address else f"{is_root} {root}"
