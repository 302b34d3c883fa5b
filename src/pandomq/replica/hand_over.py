"""An orderly hand-over (R37): another broker gets the whole log, then the role of root, and the list of deliveries.

    1  the root serves as before, until the disks of the successor and of enough brokers to elect a root are close
       behind; if any backup may be the successor, it waits only as long as leaves time for the next step
    2  the root proposes nothing more; the successor gets what it lacks, everything is committed, and enough brokers to
       elect a root have it on disk
    3  deliveries stop, and the owner reports the unacked ones: PrepareHandOver
    4  this root steps down, and asks the successor to take over with that report
    5  the next known root shows the result

If one of the first two steps takes too long the hand-over is cancelled, and the root continues; it cannot be undone
after the fourth step. Publishers wait from the second step on, so that one is short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.effects import ChangeEnded, PrepareHandOver, RequestNumber
from pandomq.replica.limits import HAND_OVER_BYTES_MAX, HAND_OVER_CLOSE_MS, HAND_OVER_HALT_MS, HAND_OVER_MS
from pandomq.replica.protocol.messages import TakeOver

if TYPE_CHECKING:
    from pandomq.replica.core import Core
    from pandomq.replica.roles.root import Root


class HandOver:
    __slots__ = (
        "_asked_for",
        "_deadline_ms",
        "_preparing",
        "_request",
        "_root",
        "_round_index",
        "_round_ms",
        "halted",
        "successor",
    )

    def __init__(self, root: Root, request: RequestNumber, asked_for: NodeName | None, successor: NodeName) -> None:
        """`asked_for`: a broker by name; None if any backup will do, since this root will end."""
        self._root = root
        self._request = request
        self._asked_for = asked_for
        self._deadline_ms = root.core.now_ms + HAND_OVER_MS
        self._preparing = False
        self.successor = successor
        self.halted = False
        """The root proposes nothing more."""
        self._round_index, self._round_ms = root.core.tail.last_index, root.core.now_ms

    def begin(self) -> None:
        self._halt_if_close()

    def _halt_if_close(self) -> None:
        """Halts if the disks are close behind: they have synced the end of the log of a moment ago. Called only at a
        tick and at the request: in between the owner may be in the middle of a batch that it will propose."""
        core = self._root.core
        if not self._is_on_disks(self._round_index):
            if core.now_ms >= self._last_chance_ms:
                self._halt()
            return
        took_ms, self._round_ms = core.now_ms - self._round_ms, core.now_ms
        self._round_index = core.tail.last_index
        if took_ms <= HAND_OVER_CLOSE_MS:
            self._halt()

    def _halt(self) -> None:
        self.halted = True
        self._deadline_ms = min(self._deadline_ms, self._root.core.now_ms + HAND_OVER_HALT_MS)
        self.advance()

    def advance(self) -> None:
        core = self._root.core
        if self.halted and not self._preparing and self._is_on_disks(core.tail.last_index):
            self._preparing = True
            core.outbox.put(PrepareHandOver(self.successor))

    def _is_on_disks(self, index: LogIndex) -> bool:
        """The log up to this index is committed, and the successor has synced it."""
        core, peer = self._root.core, self._root.peers.get(self.successor)
        if peer is None or peer.synced_index < index:
            return False
        return core.commit_index >= index and self._may_be_elected(index)

    def _may_be_elected(self, index: LogIndex) -> bool:
        """Half of the voters commit, but more than half elect, each of them once its vote is on its disk. A disk that
        has not synced the entries yet may take longer for that than a candidacy lasts: with two brokers, the old
        root's."""
        root, core = self._root, self._root.core
        able = [name for name, peer in root.peers.items() if peer.synced_index >= index and not peer.joining]
        voters = core.links.intersection(able)
        if core.synced_index >= index:
            voters.add(core.name)
        return core.membership.has_elected(voters)

    def prepared(self, payload: bytes | None) -> None:
        if not self._preparing:
            return
        root, core = self._root, self._root.core
        if payload is not None and len(payload) > HAND_OVER_BYTES_MAX:
            payload = None
        root.hand_over = None
        message = TakeOver(*core.header, core.tail.last_index, payload)
        # First this broker must no longer be root, then the other may become root.
        root.step_down(f"this broker hands over to {self.successor}", successor=self.successor)
        core.send(self.successor, message)
        core.succession = Succession(core, self._request, self._asked_for, self.successor)

    def tick(self) -> None:
        if self._root.core.now_ms >= self._deadline_ms:
            peer = self._root.peers.get(self.successor)
            has_all = peer is not None and peer.synced_index >= self._round_index
            late = "the disks of the primaries that would elect it" if has_all else self.successor
            self.give_up(f"{late} did not catch up in time")
        elif not self.halted:
            self._halt_if_close()

    @property
    def _last_chance_ms(self) -> int:
        """A root that is about to end has nothing to lose: it tries the hand-over even if no disk is close behind."""
        return self._deadline_ms - (HAND_OVER_HALT_MS if self._asked_for is None else 0)

    @property
    def next_tick_ms(self) -> int:
        if self.halted:
            return self._deadline_ms
        return self._root.core.now_ms if self._is_on_disks(self._round_index) else self._last_chance_ms

    def give_up(self, reason: str) -> None:
        self._root.hand_over = None
        self._root.core.outbox.put(ChangeEnded(self._request, False, reason))


class Succession:
    """The root has stepped down in favour of a broker, which becomes a candidate once, and may lose."""

    __slots__ = ("_asked_for", "_core", "_deadline_ms", "_request", "_successor")

    def __init__(self, core: Core, request: RequestNumber, asked_for: NodeName | None, successor: NodeName) -> None:
        self._core = core
        self._request = request
        self._asked_for = asked_for
        self._successor = successor
        self._deadline_ms = core.now_ms + HAND_OVER_MS

    def elected(self, root: NodeName) -> None:
        if root == self._core.name:
            self._end(done=False, text=f"{self._successor} was not elected, and {root} is root again")
        elif self._asked_for in (None, root):
            self._end(done=True, text=f"handed over to {root}")
        else:
            self._end(done=False, text=f"{root} was elected instead of {self._successor}")

    def tick(self) -> None:
        if self._core.now_ms >= self._deadline_ms:
            self._end(done=False, text=f"nothing shows yet that {self._successor} was elected")

    def _end(self, *, done: bool, text: str) -> None:
        self._core.succession = None
        self._core.outbox.put(ChangeEnded(self._request, done, text))


def choose_successor(root: Root, wanted: NodeName | None) -> NodeName | None:
    """The requested one, or the one with the longest log, among the voters that are in sync."""
    names = root.core.membership.sets[-1]
    able = [peer for name, peer in root.peers.items() if name in names and peer.in_sync]
    if wanted is not None:
        able = [peer for peer in able if peer.name == wanted]
    return max(able, key=lambda peer: (peer.synced_index, peer.name)).name if able else None
