"""One handler per message and completion; a role overrides those that it needs.

The handlers here hold for every role. Terms were compared before: a handler gets messages of its own term only, except
for greetings and probes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pandomq.ids import NodeName
from pandomq.replica.members import votes
from pandomq.replica.protocol.messages import (
    Admit,
    Append,
    Appended,
    AppendRejected,
    AskVote,
    Greeting,
    ReleasePromise,
    SnapshotAnswer,
    SnapshotPiece,
    TakeOver,
    Vote,
)
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from pandomq.replica.completions import Fetched, HandOverPrepared, Missing, NoSnapshot, PieceRead
    from pandomq.replica.core import Core


class Handlers:
    role: ClassVar[Role]

    def __init__(self, core: Core) -> None:
        self.core = core

    def enter(self) -> None:
        """The owner was told the role, which begins now."""

    def leave(self) -> None:
        """Another role begins."""

    def tick(self) -> None: ...

    def deadline_ms(self) -> int:
        """The time at which the next tick has something to do for this role."""
        return self.core.now_ms + self.core.settings.heartbeat_ms

    def connected(self, peer: NodeName) -> None: ...

    def disconnected(self, peer: NodeName, *, by_peer: bool) -> None: ...

    # Messages.

    def on_greeting(self, sender: NodeName, message: Greeting) -> None: ...

    def on_ask_vote(self, sender: NodeName, message: AskVote) -> None:
        votes.answer(self.core, sender, message)

    def on_vote(self, sender: NodeName, message: Vote) -> None: ...

    def on_append(self, sender: NodeName, message: Append) -> None: ...

    def on_appended(self, sender: NodeName, message: Appended) -> None: ...

    def on_refused(self, sender: NodeName, message: AppendRejected) -> None: ...

    def on_admit(self, sender: NodeName, message: Admit) -> None: ...

    def on_release_promise(self, sender: NodeName, message: ReleasePromise) -> None: ...

    def on_take_over(self, sender: NodeName, message: TakeOver) -> None: ...

    def on_snapshot_piece(self, sender: NodeName, message: SnapshotPiece) -> None: ...

    def on_snapshot_answer(self, sender: NodeName, message: SnapshotAnswer) -> None: ...

    # Completions. The core has processed those about the log before.

    def state_saved(self) -> None: ...

    def synced(self) -> None: ...

    def fetched(self, completion: Fetched) -> None: ...

    def missing(self, completion: Missing) -> None: ...

    def piece_read(self, completion: PieceRead) -> None: ...

    def no_snapshot(self, completion: NoSnapshot) -> None: ...

    def hand_over_prepared(self, completion: HandOverPrepared) -> None: ...
