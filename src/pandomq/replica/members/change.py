"""A change of members, from the request to the log entry that makes it effective.

New members catch up first, as learners; otherwise a set could be in force that is unable to commit anything. Then the
log gets "old and new", and when that is committed "new": `Root` writes the second entry, also for a change that an
earlier root began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pandomq.replica.effects import ChangeEnded, RequestNumber
from pandomq.replica.limits import CHANGE_MS, MEMBERS_MAX
from pandomq.replica.log.progress import ProgressState
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.protocol.entries import Members, encode_entry
from pandomq.replica.record import Config, check_members, encode_record

if TYPE_CHECKING:
    from pandomq.replica.roles.root import Root


class MembershipChange:
    __slots__ = ("_begun", "_deadline_ms", "_members", "_request", "_root")

    def __init__(self, root: Root, request: RequestNumber, members: tuple[Member, ...]) -> None:
        self._root = root
        self._request = request
        self._members = members
        self._deadline_ms = root.core.now_ms + CHANGE_MS
        self._begun = False

    def tick(self) -> None:
        core = self._root.core
        if self._begun or not self._root.ready or core.membership.joint or self._root.hand_over is not None:
            return
        behind = self._behind()
        if not behind:
            self._begun = True
            self._root.write([encode_entry(Members(core.membership.toward(self._members)))])
        elif core.now_ms >= self._deadline_ms:
            text = f"not caught up after {CHANGE_MS // 1000} s: {', '.join(behind)}. Wait for it, and try again"
            self.end(done=False, text=text)

    def _behind(self) -> list[str]:
        """Future members that do not hold everything committed, or are in doubt about themselves, with their lag."""
        root = self._root
        behind: list[str] = []
        for member in self._members:
            peer = root.peers.get(member.name)
            if member.name == root.core.name or member.name in root.core.membership.names:
                continue
            caught_up = peer is not None and peer.phase is ProgressState.STREAMING and not peer.joining
            if peer is None:
                behind.append(f"{member.name} (not connected)")
            elif not caught_up or peer.synced_index < root.core.commit_index:
                behind.append(f"{member.name} ({max(root.core.commit_index - peer.synced_index, 0)} entries behind)")
        return behind

    def is_done(self) -> bool:
        return self._begun and self._root.core.membership == Membership(self._members)

    def end(self, *, done: bool, text: str) -> None:
        self._root.change = None
        self._root.core.outbox.put(ChangeEnded(self._request, done, text))


def refusal(root: Root, members: tuple[Member, ...]) -> str | None:
    """The reason why this change cannot begin; None if it can."""
    core = root.core
    reason = check_members(members)
    if reason is not None:
        return reason
    if root.change is not None or core.membership.joint:
        return "another change of members is under way: wait for its end, and try again"
    for member in members:
        peer = root.peers.get(member.name)
        if peer is not None and peer.observer and member.name not in core.membership.names:
            return f"{member.name} runs as a secondary: restart it as a primary"
    joint = core.membership.toward(members)
    if len(joint.names) > MEMBERS_MAX:
        return f"old and new primaries together are more than {MEMBERS_MAX}"
    config = Config(core.tail.last_index, core.term, joint)
    try:
        # Twice: the set that follows is recorded as well.
        encode_record(msgspec.structs.replace(core.record, configs=(*core.record.configs, config, config)))
    except ValueError as too_large:
        return str(too_large)
    return None
