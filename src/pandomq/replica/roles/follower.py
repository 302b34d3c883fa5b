"""The common part of backup, learner and observer: they take the log from a root."""

from __future__ import annotations

from pandomq.ids import NodeName
from pandomq.replica.log import appending, snapshot_in
from pandomq.replica.protocol.messages import Append, ReleasePromise, SnapshotPiece
from pandomq.replica.roles.handlers import Handlers


class Follower(Handlers):
    def tick(self) -> None:
        """A root without a message for longer than the promise to it no longer counts as root."""
        core = self.core
        if core.root is not None and core.now_ms >= core.promise_until_ms:
            core.root = None
            core.tell_role()

    def on_append(self, sender: NodeName, message: Append) -> None:
        self.core.follow(sender)
        appending.receive(self.core, sender, message)

    def on_snapshot_piece(self, sender: NodeName, message: SnapshotPiece) -> None:
        self.core.follow(sender)
        snapshot_in.receive(self.core, sender, message)

    def on_release_promise(self, sender: NodeName, message: ReleasePromise) -> None:
        core = self.core
        if sender == core.promised_to:
            core.release_promise()
            if core.root == sender:
                core.root = None
                core.tell_role()

    def synced(self) -> None:
        appending.acknowledge(self.core)

    def disconnected(self, peer: NodeName, *, by_peer: bool) -> None:
        """A process that has ended no longer needs its lease, and one that closed the link counts it as lost."""
        core = self.core
        if by_peer and peer == core.promised_to:
            core.release_promise()
            if core.root is not None:
                core.root = None
                core.tell_role()
