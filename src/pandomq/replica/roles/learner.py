"""A broker that takes the log and is never a candidate: it is in doubt about its own past, or not among the voters.

A learner in doubt does not vote either, and does not count (R21), until a root admits it. By then it holds an entry
that half of the voters hold without its help, written after it came. So it holds everything that it might have helped
to commit before; and a candidate that still has its old vote can no longer win: each majority with the learner's old
vote in it has a member that holds the entry, and the candidate does not.
"""

from __future__ import annotations

import msgspec

from pandomq.ids import NodeName
from pandomq.replica.protocol.messages import Admit
from pandomq.replica.roles.follower import Follower
from pandomq.replica.roles.transitions import Role


class Learner(Follower):
    role = Role.LEARNER

    def on_admit(self, sender: NodeName, message: Admit) -> None:
        core = self.core
        # An admission that was sent before this broker lost its state once more does not apply to it.
        if core.record.joining and message.life == core.life and sender == core.root:
            core.note(msgspec.structs.replace(core.record, joining=False))
