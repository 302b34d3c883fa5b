"""A root that goes, in an orderly way (R37): another gets the whole log, then the office, and what was delivered.

    1  nothing more is proposed; the successor gets what it lacks, and everything is committed
    2  deliveries stop, and the owner says which are out: PrepareHandOver
    3  this root resigns, and asks the successor to take over with that

If it takes too long it is given up, and the root goes on; after the third step there is no way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.ids import NodeName
from pandomq.replica.effects import ChangeEnded, PrepareHandOver
from pandomq.replica.limits import HAND_OVER_BYTES_MAX, HAND_OVER_MS
from pandomq.replica.messages import TakeOver

if TYPE_CHECKING:
    from pandomq.replica.roles.root import Root


class HandOver:
    __slots__ = ("_deadline_ms", "_preparing", "_root", "successor")

    def __init__(self, root: Root, successor: NodeName) -> None:
        self._root = root
        self._deadline_ms = root.core.now_ms + HAND_OVER_MS
        self._preparing = False
        self.successor = successor

    def advance(self) -> None:
        core, peer = self._root.core, self._root.peers.get(self.successor)
        if self._preparing or peer is None:
            return
        last_index = core.tail.last_index
        if peer.synced_index >= last_index and core.commit_index >= last_index:
            self._preparing = True
            core.outbox.put(PrepareHandOver(self.successor))

    def prepared(self, payload: bytes | None) -> None:
        if not self._preparing:
            return
        root, core = self._root, self._root.core
        if payload is not None and len(payload) > HAND_OVER_BYTES_MAX:
            payload = None
        root.hand_over = None
        message = TakeOver(*core.header, core.tail.last_index, payload)
        # First it is no longer root, then the other may become one.
        root.resign(f"it hands over to {self.successor}", successor=self.successor)
        core.send(self.successor, message)
        core.outbox.put(ChangeEnded(True, f"handed over to {self.successor}"))

    def tick(self) -> None:
        if self._root.core.now_ms >= self._deadline_ms:
            self.give_up(f"{self.successor} did not catch up in time")

    def give_up(self, reason: str) -> None:
        self._root.hand_over = None
        self._root.core.outbox.put(ChangeEnded(False, reason))


def choose_successor(root: Root, wanted: NodeName | None) -> NodeName | None:
    """The one that is asked for, or the one whose log is longest, among the voters that are in sync."""
    names = root.core.membership.sets[-1]
    able = [peer for name, peer in root.peers.items() if name in names and peer.in_sync]
    if wanted is not None:
        able = [peer for peer in able if peer.name == wanted]
    return max(able, key=lambda peer: (peer.synced_index, peer.name)).name if able else None
