"""A change of members, from the wish to the entry that makes it so.

New members catch up first, as learners; otherwise a set could be in force that is not able to commit anything. Then the
log says "old and new", and when that is committed "new": `Root` sees to that, also for a change that an older root
began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pandomq.replica.effects import ChangeEnded
from pandomq.replica.entries import Members, encode_entry
from pandomq.replica.limits import CHANGE_MS, MEMBERS_MAX
from pandomq.replica.membership import Member, Membership
from pandomq.replica.progress import Phase
from pandomq.replica.record import Config, check_members, encode_record

if TYPE_CHECKING:
    from pandomq.replica.roles.root import Root


class Change:
    __slots__ = ("_begun", "_deadline_ms", "_members", "_root")

    def __init__(self, root: Root, members: tuple[Member, ...]) -> None:
        self._root = root
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
            self.end(done=False, text=f"{', '.join(behind)} did not catch up in time")

    def _behind(self) -> list[str]:
        """Members to be that do not hold what is committed, or are in doubt about themselves."""
        root = self._root
        behind: list[str] = []
        for member in self._members:
            peer = root.peers.get(member.name)
            if member.name == root.core.name or member.name in root.core.membership.names:
                continue
            caught_up = peer is not None and peer.phase is Phase.STREAMING and not peer.joining
            if peer is None or not caught_up or peer.synced_index < root.core.commit_index:
                behind.append(member.name)
        return behind

    def is_done(self) -> bool:
        return self._begun and self._root.core.membership == Membership(self._members)

    def end(self, *, done: bool, text: str) -> None:
        self._root.change = None
        self._root.core.outbox.put(ChangeEnded(done, text))


def refusal(root: Root, members: tuple[Member, ...]) -> str | None:
    """Why this change cannot begin; None if it can."""
    core = root.core
    reason = check_members(members)
    if reason is not None:
        return reason
    if root.change is not None or core.membership.joint:
        return "another change is under way"
    for member in members:
        peer = root.peers.get(member.name)
        if peer is not None and peer.observer and member.name not in core.membership.names:
            return f"{member.name} runs as a secondary: start it again as a primary"
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
