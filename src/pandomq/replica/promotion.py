"""A forced promotion (D2): a person says that some primaries are gone for good, and this broker goes on without them.

What only they had is lost to the cluster, so it is asked first who lives: if one of the dead answers, or a broker that
lives has a newer log or hears a root, it is refused. Then a new epoch begins with an entry in this broker's log that
names the voters that are left. Epochs outrank terms: whoever hears of a newer one follows it, and what it wrote in the
old one and the new one does not have is set aside.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.core import Core
from pandomq.replica.effects import ChangeEnded
from pandomq.replica.entries import EpochBegins, LogEntry, encode_entry
from pandomq.replica.limits import PROBE_MS, PROMOTION_TERM_STEP
from pandomq.replica.membership import Membership
from pandomq.replica.messages import Probe, ProbeAnswer
from pandomq.replica.roles.candidate import Candidate
from pandomq.replica.roles.transitions import Role


class Promotion:
    """One at a time, on one broker."""

    def __init__(self, core: Core, dead: Sequence[NodeName], epoch_id: str) -> None:
        self._core = core
        self._dead = tuple(sorted(set(dead)))
        self._epoch_id = epoch_id
        self._number = core.chance.randrange(2**62)
        self.deadline_ms = core.now_ms + PROBE_MS
        self._written: LogIndex | None = None
        """The entry with which the epoch begins."""
        self.refusal = refusal(core, self._dead, epoch_id)
        if self.refusal is None:
            for peer in core.others:
                core.send(peer, Probe(*core.header, self._number))

    def answered(self, sender: NodeName, answer: ProbeAnswer) -> None:
        if answer.number != self._number or self.refusal is not None:
            return
        if sender in self._dead and not answer.joining:
            self.refusal = f"{sender} is not dead: it answered"
        elif answer.end > self._core.end:
            self.refusal = f"{sender} has a newer log: promote that one"
        elif answer.root is not None:
            self.refusal = f"{sender} hears {answer.root} as root"

    def is_over(self) -> bool:
        """Ends with a refusal, or with a candidacy in the new epoch."""
        core = self._core
        if self._written is not None:
            return self._stand(self._written)
        if self.refusal is None and core.now_ms < self.deadline_ms:
            return False
        reason = self.refusal or refusal(core, self._dead, self._epoch_id)
        if reason is not None:
            core.outbox.put(ChangeEnded(False, reason))
            return True
        if core.damaged_from is not None and core.cutting is None:
            # Nobody is left from whom the log could be repaired: what is damaged is kept aside.
            core.cut_damage()
        if core.cutting is not None:
            return False
        self._begin()
        return False

    def _begin(self) -> None:
        core = self._core
        members = core.membership.members
        left = tuple(member for name, member in sorted(members.items()) if name not in self._dead)
        epoch, term = core.state.epoch + 1, Term(max(core.term, core.tail.last_term) + PROMOTION_TERM_STEP)
        # What a damaged log is known to have lost is lost to the new epoch; what is left is where it begins.
        core.record = msgspec.structs.replace(core.record, floor=None, joining=False)
        core.save(epoch=epoch, epoch_id=self._epoch_id, term=term, vote=None)
        core.root = None
        entry = EpochBegins(epoch, self._epoch_id, Membership(left), self._dead)
        # In the log before the election: by this entry the voters tell who may stand in the epoch.
        core.write([LogEntry(term, encode_entry(entry))])
        core.matched_index = LogIndex(0)
        self._written = core.tail.last_index
        if core.handlers.role is Role.CANDIDATE:
            core.become_follower()

    def _stand(self, index: LogIndex) -> bool:
        """When a crash can no longer undo it. Until then nobody is told; who hears nothing promotes again."""
        core = self._core
        if core.epoch_id_at(core.tail.last_index) != self._epoch_id or core.state.epoch_id != self._epoch_id:
            core.outbox.put(ChangeEnded(False, "a newer epoch has begun elsewhere"))
            return True
        if core.synced_index < index:
            return False
        text = f"epoch {core.state.epoch} begins without {', '.join(self._dead) or 'anybody missing'}"
        core.outbox.put(ChangeEnded(True, text))
        if core.handlers.role in (Role.BACKUP, Role.LEARNER):
            core.become(Candidate(core, at_once=not core.others))
        return True


def refusal(core: Core, dead: Sequence[NodeName], epoch_id: str) -> str | None:
    names = core.membership.names
    if not epoch_id or epoch_id == core.state.epoch_id:
        return "a new epoch needs a new id"
    if core.handlers.role is Role.ROOT:
        return "this broker is root"
    # One in doubt may do it: if all are, nobody else can. In the new epoch it has promised nothing yet.
    if core.observer or core.emptying or not names:
        return "this broker's own store is empty"
    if core.record.excerpts:
        return "this broker's own store is that of a secondary: it has no messages"
    if core.name not in names or core.name in dead:
        return "this broker is not among the primaries that are left"
    if not set(dead) <= names:
        return f"{', '.join(sorted(set(dead) - names))} is no primary"
    if core.root is not None and core.now_ms < core.promise_until_ms:
        return f"{core.root} is root and was heard just now"
    return None
