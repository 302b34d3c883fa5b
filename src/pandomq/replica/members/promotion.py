"""A forced promotion (D2): the operator declares that some primaries are gone for good, and this broker continues
without them.

Entries that only they had are lost to the cluster, so this broker probes all others first, repeatedly for a while: it
rejects the promotion if one of the dead answers, if a remaining primary does not, or if that primary has a newer log,
follows a root or is being promoted itself. Then a new epoch begins with an entry in this broker's log that names the
remaining voters. Epochs outrank terms: each broker that receives a newer one follows it, and sets aside entries that
the new one does not have.

The remaining primaries save the number of the epoch before they answer, and no other promotion among them uses it. So
if this broker is lost before they know that the epoch has begun, and one of them is promoted next, that begins a newer
epoch, not another one of the same number. Two epochs of one number arise only if the operator promotes both sides of a
split.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.core import Core
from pandomq.replica.effects import ChangeEnded, RequestNumber
from pandomq.replica.limits import PROBE_AGAIN_MS, PROBE_ANSWER_MS_MAX, PROBE_MS, PROMOTION_TERM_STEP
from pandomq.replica.members import votes
from pandomq.replica.members.membership import Membership
from pandomq.replica.protocol.entries import EpochBegins, LogEntry, encode_entry
from pandomq.replica.protocol.messages import Probe, ProbeAnswer
from pandomq.replica.record import EpochClaim
from pandomq.replica.roles.candidate import Candidate
from pandomq.replica.roles.transitions import Role


class Promotion:
    """One at a time, on one broker."""

    def __init__(self, core: Core, request: RequestNumber, dead: Sequence[NodeName], epoch_id: str) -> None:
        self._core = core
        self._request = request
        self._dead = tuple(sorted(set(dead)))
        self._epoch_id = epoch_id
        self._number = core.chance.randrange(2**62)
        self._begun_ms = self._probed_ms = core.now_ms
        self._deadline_ms = core.now_ms + PROBE_MS
        self._answered_ms: dict[NodeName, int] = {}
        """The time at which each of the remaining primaries last answered."""
        self._epoch = _taken(core, epoch_id) + 1
        self._written: LogIndex | None = None
        """The entry with which the epoch begins."""
        self.refusal = refusal(core, self._dead, epoch_id)
        if self.refusal is None:
            self._probe(core.others)

    def _probe(self, peers: Sequence[NodeName]) -> None:
        for peer in peers:
            self._core.send(peer, Probe(*self._core.header, self._number, self._epoch, self._epoch_id))

    def _outrank(self, taken: int) -> None:
        """Probes all again if another epoch has this one's number, or a higher one."""
        if taken >= self._epoch:
            self._epoch = taken + 1
            self._number = self._core.chance.randrange(2**62)
            self._answered_ms.clear()
            self._probe(self._core.others)

    def connected(self, peer: NodeName) -> None:
        """Probes from before the link existed did not arrive."""
        if self._written is None and peer in self._core.others:
            self._probe([peer])

    @property
    def age_ms(self) -> int:
        return self._core.now_ms - self._begun_ms

    @property
    def next_tick_ms(self) -> int:
        return min(self._deadline_ms, self._probed_ms + PROBE_AGAIN_MS)

    def answered(self, sender: NodeName, answer: ProbeAnswer) -> None:
        if answer.number != self._number or self.refusal is not None or self._written is not None:
            return
        if sender not in self._dead and not answer.recovering and answer.promoting_ms is None:
            self._answered_ms[sender] = self._core.now_ms
        self._outrank(max(answer.epoch, answer.taken))
        if sender in self._dead and not answer.joining:
            self.refusal = f"{sender} is not dead: it responded. Stop it, or do not name it as dead"
        elif answer.promoting_ms is not None and answer.promoting_ms >= self.age_ms:
            # Of two promotions at the same time the younger one is rejected; the older one waits until that is done.
            self.refusal = f"{sender} is being promoted as well: wait for its result, or stop it and name it as dead"
        elif answer.end > self._core.end:
            self.refusal = f"{sender} has a newer log: promote that one"
        elif answer.root is not None:
            self.refusal = f"{sender} has contact to the root {answer.root}: wait for that root, or stop it"

    def is_over(self) -> bool:
        """Ends with a rejection, or with a candidacy in the new epoch."""
        core = self._core
        if self._written is not None:
            return self._stand(self._written)
        self._outrank(_taken(core, self._epoch_id))
        if core.now_ms - self._probed_ms >= PROBE_AGAIN_MS:
            self._probed_ms = core.now_ms
            self._probe(core.others)
        if self.refusal is None and core.now_ms < self._deadline_ms:
            return False
        reason = self.refusal or refusal(core, self._dead, self._epoch_id) or self._silence()
        if reason is not None:
            core.outbox.put(ChangeEnded(self._request, False, reason))
            return True
        if core.damaged_from is not None and core.cutting is None:
            # No broker is left from which the log could be repaired: the damaged part is kept in a file.
            core.cut_damage()
        if core.cutting is not None:
            return False
        self._begin()
        return False

    def _silence(self) -> str | None:
        """A remaining primary that did not answer may have a newer log, or be promoted as well."""
        since_ms = self._core.now_ms - PROBE_ANSWER_MS_MAX
        left = [peer for peer in self._core.others if peer not in self._dead]
        silent = [peer for peer in left if self._answered_ms.get(peer, since_ms) <= since_ms]
        if not silent:
            return None
        return f"no response from {', '.join(silent)}: name every primary that is lost as dead"

    def _begin(self) -> None:
        core = self._core
        members = core.membership.members
        left = tuple(member for name, member in sorted(members.items()) if name not in self._dead)
        epoch, term = self._epoch, Term(max(core.term, core.tail.last_term) + PROMOTION_TERM_STEP)
        # Entries that a damaged log has lost are lost to the new epoch; it begins with the rest.
        core.record = msgspec.structs.replace(core.record, floor=None, joining=False)
        core.save(epoch=epoch, epoch_id=self._epoch_id, term=term, vote=None)
        core.root = None
        entry = EpochBegins(epoch, self._epoch_id, Membership(left), self._dead)
        # In the log before the election: this entry shows the voters which brokers may be candidates in the epoch.
        core.write([LogEntry(term, encode_entry(entry))])
        core.matched_index = LogIndex(0)
        self._written = core.tail.last_index
        if core.handlers.role is Role.CANDIDATE:
            core.become_follower()

    def _stand(self, index: LogIndex) -> bool:
        """The epoch begins when a crash can no longer undo it. Until then no broker is told; after a crash before that
        the operator promotes again."""
        core = self._core
        if core.epoch_id_at(core.tail.last_index) != self._epoch_id or core.state.epoch_id != self._epoch_id:
            text = "another broker has created a newer epoch: check with `pandomq status` whether there is a root"
            core.outbox.put(ChangeEnded(self._request, False, text))
            return True
        if core.synced_index < index:
            return False
        text = f"epoch {core.state.epoch} was created without {', '.join(self._dead) or 'any dead broker'}"
        core.outbox.put(ChangeEnded(self._request, True, text))
        if core.handlers.role in (Role.BACKUP, Role.LEARNER):
            core.become(Candidate(core, at_once=not core.others))
        return True


def answer_probe(core: Core, promotion: Promotion | None, sender: NodeName, probe: Probe) -> None:
    taken = _taken(core, probe.claimed_id)
    claim = EpochClaim(probe.claimed, probe.claimed_id)
    # The other broker does not count one that is being promoted itself before one of the two is rejected.
    if promotion is None and probe.claimed > taken and claim != core.record.claim:
        core.note(msgspec.structs.replace(core.record, claim=claim))
    root = core.root if core.now_ms < core.promise_until_ms or core.root == core.name else None
    promoting_ms = None if promotion is None else promotion.age_ms
    standing = (votes.voting_end(core), root, core.record.joining)
    core.send(sender, ProbeAnswer(*core.header, probe.number, *standing, promoting_ms=promoting_ms, taken=taken))


def _taken(core: Core, epoch_id: str) -> int:
    """The highest number of an epoch, other than this one, that has begun or was about to."""
    claim = core.record.claim
    return max(core.state.epoch, claim.epoch if claim is not None and claim.epoch_id != epoch_id else 0)


def refusal(core: Core, dead: Sequence[NodeName], epoch_id: str) -> str | None:
    names = core.membership.names
    if not epoch_id or epoch_id == core.state.epoch_id:
        return "a new epoch needs a new id: send the request again"
    if core.handlers.role is Role.ROOT:
        return "this broker is already the root: it need not be promoted"
    # A broker in doubt may do it: if all are, no other can. In the new epoch it has promised nothing yet.
    if core.observer or core.emptying or not names:
        return "this broker's own store is empty: promote a primary that has a log"
    if core.incoming is not None and core.incoming.installing:
        # With the old store the entry would be lost with which the epoch begins.
        return "a snapshot is replacing this broker's store: try again when it is complete"
    if core.record.excerpts:
        return "this broker's own store is that of a secondary and has no messages: promote a primary"
    if core.name not in names or core.name in dead:
        return "this broker is not among the remaining primaries: promote one of those"
    if not set(dead) <= names:
        return f"{', '.join(sorted(set(dead) - names))} is not a primary: name only primaries as dead"
    if core.root is not None and core.now_ms < core.promise_until_ms:
        return f"{core.root} is root and was in contact just now: wait for that root, or stop it"
    return None
