"""A voter that asks to be root: first whether it would win, then in a term of its own.

The first request, the pre-vote, changes nothing anywhere. So a broker that was cut off and comes back does not force an
election on a working cluster: brokers that follow a root reject it. Only with a majority for it does the candidate
begin a term, vote for itself, and request real votes.
"""

from __future__ import annotations

from pandomq.ids import NodeName, Term
from pandomq.replica.core import Core
from pandomq.replica.log import appending, snapshot_in
from pandomq.replica.members import seniority
from pandomq.replica.protocol.messages import Append, AskVote, ReleasePromise, SnapshotPiece, Vote
from pandomq.replica.roles.handlers import Handlers
from pandomq.replica.roles.transitions import Role


class Candidate(Handlers):
    role = Role.CANDIDATE

    def __init__(
        self, core: Core, *, handed_over: bool = False, payload: bytes | None = None, at_once: bool = False
    ) -> None:
        """`handed_over`: the root has requested this, with its report of deliveries. `at_once`: without pre-vote."""
        super().__init__(core)
        self._handed_over = handed_over
        self._payload = payload
        self._pre = not (handed_over or at_once)
        self._granted: set[NodeName] = set()
        self._refused: set[NodeName] = set()
        self._stood_ms = core.now_ms
        """The time at which vote requests could be sent first."""
        # Promises to the old root bind the other voters for a lease, in which only its successor can be elected.
        self._patience_ms = core.settings.lease_ms if handed_over else core.settings.candidacy_ms
        self._own_vote_number = 0

    def enter(self) -> None:
        if self._pre:
            self._granted = {self.core.name}
            self._ask(Term(self.core.term + 1))
            self._count()
        else:
            self._stand()

    def _stand(self) -> None:
        """Begins a new term, with the first vote for itself, which counts like any other once it is on disk."""
        core = self.core
        self._pre = False
        self._granted, self._refused = set(), set()
        self._stood_ms = core.now_ms
        core.save(term=core.term + 1, vote=core.name)
        core.root = None
        core.forget_match()
        core.tell_role()
        self._own_vote_number = core.outbox.saving_number
        self._ask(core.term)

    def _ask(self, candidacy: Term) -> None:
        for peer in self.core.others:
            self._ask_one(peer, candidacy)

    def _ask_one(self, peer: NodeName, candidacy: Term) -> None:
        core = self.core
        core.send(peer, AskVote(*core.header, candidacy, self._pre, core.end, self._handed_over))

    def connected(self, peer: NodeName) -> None:
        """This peer could not be asked before, or the request was lost with an older link. A successor that loses for
        lack of this vote does not become a candidate again with the hand-over; a pre-vote is soon repeated."""
        if not self._pre and peer in self.core.others:
            self._ask_one(peer, self.core.term)

    def on_vote(self, sender: NodeName, message: Vote) -> None:
        candidacy = self.core.term + self._pre
        if message.pre != self._pre or message.candidacy != candidacy:
            return
        if message.granted:
            self._granted.add(sender)
            self._count()
        else:
            self._refused.add(sender)
            hopes = (self.core.links | {self.core.name}) - self._refused
            if not self._pre and not self.core.membership.has_elected(hopes):
                self._lose(seniority.delay_after_split_ms(self.core))

    def state_saved(self) -> None:
        if not self._is_saving() and self.core.name not in self._granted:
            # The vote requests wait for this vote, and so does the timeout of the candidacy: that time is for the other
            # voters.
            self._stood_ms = self.core.now_ms
            self._granted.add(self.core.name)
            self._count()

    def _is_saving(self) -> bool:
        """Its own vote is not on disk yet."""
        return not self._pre and self.core.outbox.saved_number < self._own_vote_number

    def _count(self) -> None:
        core = self.core
        if not core.membership.has_elected(self._granted):
            return
        if self._pre:
            self._stand()
        elif not self._is_saving():
            core.elected(self._granted, self._stood_ms, self._payload)

    def tick(self) -> None:
        if not self._is_saving() and self.core.now_ms - self._stood_ms >= self._patience_ms:
            self._lose(seniority.delay_after_defeat_ms(self.core))

    def _lose(self, rest_ms: int) -> None:
        for peer in sorted(self._granted - {self.core.name}):
            # They need not keep a promise to a candidate that lost.
            self.core.send(peer, ReleasePromise(*self.core.header))
        self.core.become_follower(rest_ms=1 + rest_ms)

    def deadline_ms(self) -> int:
        return super().deadline_ms() if self._is_saving() else self._stood_ms + self._patience_ms

    # Another has won this term.

    def on_append(self, sender: NodeName, message: Append) -> None:
        self.core.become_follower()
        self.core.follow(sender)
        appending.receive(self.core, sender, message)

    def on_snapshot_piece(self, sender: NodeName, message: SnapshotPiece) -> None:
        self.core.become_follower()
        self.core.follow(sender)
        snapshot_in.receive(self.core, sender, message)
