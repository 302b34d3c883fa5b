"""How a root brings its log to others: from memory to those who keep up, from disk to those who do not, by snapshot to
those whose next entry is gone.

A slow peer costs a bounded window and nothing else (D13): what does not fit into the window waits, and what has left
memory by then is fetched from disk for that peer alone.
"""

from __future__ import annotations

from zlib import crc32

from pandomq.ids import LogIndex
from pandomq.replica.completions import Fetched, Missing, NoSnapshot, PieceRead
from pandomq.replica.core import Core
from pandomq.replica.effects import Fetch, ReadPiece
from pandomq.replica.entries import LogEntry
from pandomq.replica.messages import Append, Refused, SnapshotAnswer, SnapshotPiece
from pandomq.replica.news import News
from pandomq.replica.progress import Phase, Progress, Transfer
from pandomq.replica.record import encode_record


class Replication:
    """For one root, in one term."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.news = News(core)
        self.prompt_index = LogIndex(0)
        """Up to here somebody waits for the entries to be received."""

    # Appends.

    def send(self, peer: Progress) -> None:
        """Whatever fits into the window."""
        tail = self._core.tail
        while peer.phase is not Phase.SNAPSHOT and peer.has_room and peer.next_index <= self._end_for(peer):
            if peer.next_index < tail.first_index:
                self._fetch(peer)
                return
            self._append(peer, tail.entries_from(peer.next_index, self._append_bytes(peer)))

    def _end_for(self, peer: Progress) -> LogIndex:
        return self.news.end_for(peer) if peer.observer else self._core.tail.last_index

    def _append_bytes(self, peer: Progress) -> int:
        return min(self._core.settings.append_bytes, peer.window_bytes)

    def beat(self, peer: Progress) -> None:
        """Keeps the lease, tells how far the log is committed, and finds out what was lost on the way."""
        if peer.phase is Phase.PROBING and peer.next_index >= self._core.tail.first_index:
            self._append(peer, self._core.tail.entries_from(peer.next_index, self._append_bytes(peer)))
            return
        if peer.observer and self._send_gathered(peer):
            return
        # The entry before is one that the peer is known to have, so that it never has to refuse.
        index = peer.received_index if self._core.tail.term_at(peer.received_index) is not None else LogIndex(0)
        self._send(peer, index, (), prompt=True)
        if peer.phase is Phase.PROBING:
            self.send(peer)
        elif peer.phase is Phase.SNAPSHOT:
            self._resume_snapshot(peer)

    def _send_gathered(self, peer: Progress) -> bool:
        """To a secondary, instead of a heartbeat: what has waited for one."""
        tail = self._core.tail
        is_at_hand = tail.first_index <= peer.next_index <= tail.last_index
        if peer.phase is not Phase.STREAMING or not peer.has_room or not is_at_hand:
            return False
        self._append(peer, tail.entries_from(peer.next_index, self._append_bytes(peer)))
        return True

    def tell_commit(self, peer: Progress) -> None:
        """Who is sent nothing else just now learns at once that what it has is committed; no answer is needed."""
        core = self._core
        if peer.observer:
            if self.news.is_untold(peer):
                self._send(peer, peer.received_index, (), prompt=False)
        elif peer.in_sync and peer.told_index < core.commit_index and peer.received_index >= core.tail.last_index:
            self._send(peer, peer.received_index, (), prompt=False)

    def _append(self, peer: Progress, entries: tuple[LogEntry, ...]) -> None:
        first_index = peer.next_index
        last_index = LogIndex(first_index + len(entries) - 1)
        if self._core.tail.term_at(LogIndex(first_index - 1)) is None:
            self._begin_snapshot(peer)
            return
        # Of a secondary one wants to hear at once how far it is: it is told at once, too, what of that is committed.
        prompt = peer.phase is Phase.PROBING or peer.observer or first_index <= self.prompt_index
        if peer.observer:
            entries = self.news.excerpts(first_index, entries)
        peer.sent(last_index, sum(len(entry.payload) for entry in entries), self._core.now_ms)
        self._send(peer, LogIndex(first_index - 1), entries, prompt=prompt)

    def _send(self, peer: Progress, prev_index: LogIndex, entries: tuple[LogEntry, ...], *, prompt: bool) -> None:
        core = self._core
        term = core.tail.term_at(prev_index)
        assert term is not None
        peer.told_index = LogIndex(min(core.commit_index, prev_index + len(entries)))
        message = Append(
            *core.header,
            core.now_ms,
            prev_index,
            term,
            core.epoch_id_at(prev_index),
            entries,
            core.commit_index,
            prompt,
            peer.observer,
        )
        core.send(peer.name, message)

    def refused(self, peer: Progress, message: Refused) -> None:
        """Looks for an entry that both have, from where the peer says that one may be."""
        peer.waiting = False
        if message.prev_index <= peer.received_index or message.prev_index >= peer.next_index:
            # An answer to an append that is no longer of interest: the peer is known to have that entry.
            return
        last_index = self._core.tail.last_not_after(message.last_index, message.last_term)
        peer.probe_from_received()
        peer.next_index = LogIndex(max(last_index, peer.received_index) + 1)
        self.send(peer)

    # Entries from disk.

    def _fetch(self, peer: Progress) -> None:
        if not peer.fetching:
            peer.fetching = True
            peer.in_sync = False
            self._core.outbox.put(Fetch(peer.name, peer.next_index, self._append_bytes(peer), peer.observer))

    def fetched(self, peer: Progress, completion: Fetched) -> None:
        if not peer.fetching:
            return
        peer.fetching = False
        if completion.first_index == peer.next_index and peer.phase is not Phase.SNAPSHOT and peer.has_room:
            self._append(peer, completion.entries)
        self.send(peer)

    def missing(self, peer: Progress, completion: Missing) -> None:
        if peer.fetching and completion.first_index == peer.next_index:
            peer.fetching = False
            self._begin_snapshot(peer)

    # Snapshots.

    def _begin_snapshot(self, peer: Progress) -> None:
        peer.phase = Phase.SNAPSHOT
        peer.waiting = peer.in_sync = False
        peer.transfer = Transfer(self._core.now_ms)
        self._read_piece(peer, peer.transfer)

    def _read_piece(self, peer: Progress, transfer: Transfer) -> None:
        if peer.has_room_for_piece(transfer):
            transfer.reading = True
            lean = transfer.next_number >= transfer.raw_to
            self._core.outbox.put(ReadPiece(peer.name, transfer.source, transfer.next_number, lean, peer.observer))

    def piece_read(self, peer: Progress, piece: PieceRead) -> None:
        core, transfer = self._core, peer.transfer
        if transfer is None or not transfer.reading:
            return
        transfer.reading = False
        if piece.number == transfer.next_number and transfer.source in ("", piece.source):
            transfer.source = piece.source
            transfer.index = piece.index
            transfer.next_number += 1
            transfer.whole = piece.last
            record = encode_record(core.record.as_of(piece.index)) if piece.number == 0 else b""
            message = SnapshotPiece(
                *core.header,
                core.now_ms,
                piece.source,
                piece.index,
                piece.term,
                core.epoch_id_at(piece.index),
                record,
                piece.number,
                piece.data,
                crc32(piece.data),
                piece.last,
                peer.observer,
            )
            core.send(peer.name, message)
        self._read_piece(peer, transfer)

    def no_snapshot(self, peer: Progress, completion: NoSnapshot) -> None:
        """A newer one has taken its place, or there is none yet: another attempt comes with the next heartbeat."""
        transfer = peer.transfer
        if transfer is not None and transfer.reading and completion.source == transfer.source:
            peer.transfer = None

    def _resume_snapshot(self, peer: Progress) -> None:
        """With each heartbeat. A peer that has taken nothing for a lease is sent everything again that it has not
        said to have."""
        transfer = peer.transfer
        if transfer is None:
            self._begin_snapshot(peer)
            return
        if self._core.now_ms - transfer.progress_ms > self._core.settings.lease_ms:
            transfer.progress_ms = self._core.now_ms
            # Who has taken them all reads them over before it says so; the last one again finds out whether it does.
            transfer.rewind(min(transfer.taken, max(transfer.next_number - 1, 0)))
        self._read_piece(peer, transfer)

    def snapshot_answered(self, peer: Progress, message: SnapshotAnswer) -> None:
        transfer = peer.transfer
        if transfer is None or message.source != transfer.source:
            return
        if message.installed:
            peer.probe(LogIndex(transfer.index + 1))
            self.send(peer)
            return
        if message.taken != transfer.taken:
            # Fewer than before if it had to begin again.
            transfer.taken = message.taken
            transfer.progress_ms = self._core.now_ms
            # More than it was sent if the link broke on the way: it goes on from the last one that it has.
            transfer.next_number = max(transfer.next_number, message.taken - 1)
        transfer.raw_to = max(transfer.raw_to, message.raw_to)
        if message.wanted is not None and message.wanted < transfer.next_number:
            transfer.rewind(message.wanted)
        self._read_piece(peer, transfer)
