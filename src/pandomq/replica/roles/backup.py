"""A voter that follows a root, or waits for one, and becomes a candidate when it has had no message of a root for too
long."""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.core import Core
from pandomq.replica.members import seniority, votes
from pandomq.replica.protocol.messages import TakeOver
from pandomq.replica.roles.candidate import Candidate
from pandomq.replica.roles.follower import Follower
from pandomq.replica.roles.transitions import Role


class Backup(Follower):
    role = Role.BACKUP

    def __init__(self, core: Core, *, rest_ms: int = 0) -> None:
        """`rest_ms`: it has just lost an election, and lets others become candidates first."""
        super().__init__(core)
        self._stand_at_ms = core.now_ms + rest_ms if rest_ms else None

    def tick(self) -> None:
        super().tick()
        core = self.core
        if core.now_ms < core.promise_until_ms:
            self._stand_at_ms = None
            return
        if self._stand_at_ms is None:
            # The election begins now; seniority decides which broker is the first candidate.
            self._stand_at_ms = core.now_ms + self._delay_ms()
        if core.now_ms >= self._stand_at_ms and votes.may_stand(core):
            core.become(Candidate(core))

    def deadline_ms(self) -> int:
        if self._stand_at_ms is None:
            return self.core.promise_until_ms
        if self.core.now_ms < self._stand_at_ms:
            return self._stand_at_ms
        # It may not be a candidate for now, for instance because its disk stalls.
        return super().deadline_ms()

    def _delay_ms(self) -> int:
        alone = self.core.membership.names == {self.core.name}
        return 0 if alone else seniority.delay_ms(self.core)

    def on_take_over(self, sender: NodeName, message: TakeOver) -> None:
        """The root has stepped down in this broker's favour. No broker delivers anything until there is a new root, so
        the report of deliveries stays true if this candidacy succeeds."""
        core = self.core
        if sender == core.root and message.last_index == core.tail.last_index and votes.may_stand(core):
            core.become(Candidate(core, handed_over=True, payload=message.payload))
