"""How a root sends its log to other brokers: from memory to those that keep up, from disk to those that do not, and as
a snapshot to those whose next entry is reclaimed.

A slow peer costs a bounded window and nothing else (D13): entries that do not fit into the window wait, and entries
that have left memory by then are fetched from disk for that peer only.
"""

from __future__ import annotations

from zlib import crc32

from pandomq.ids import LogIndex
from pandomq.replica.completions import Fetched, Missing, NoSnapshot, PieceRead
from pandomq.replica.core import Core
from pandomq.replica.effects import Fetch, ReadPiece
from pandomq.replica.log.news import News
from pandomq.replica.log.progress import Progress, ProgressState, SnapshotTransfer
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.protocol.messages import Append, AppendRejected, SnapshotAnswer, SnapshotPiece
from pandomq.replica.record import encode_record


class LogReplicator:
    """For one root, in one term."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.news = News(core)
        self.prompt_index = LogIndex(0)
        """The owner waits for the receipt of entries up to here."""

    # Appends.

    def send(self, peer: Progress) -> None:
        """Sends as much as fits into the window."""
        tail = self._core.tail
        while peer.phase is not ProgressState.SNAPSHOT and peer.has_room and peer.next_index <= self._end_for(peer):
            if peer.next_index < tail.first_index:
                self._fetch(peer)
                return
            self._append(peer, tail.entries_from(peer.next_index, self._append_bytes(peer)))

    def _end_for(self, peer: Progress) -> LogIndex:
        return self.news.end_for(peer) if peer.observer else self._core.tail.last_index

    def _append_bytes(self, peer: Progress) -> int:
        return min(self._core.settings.append_bytes, peer.window_bytes)

    def beat(self, peer: Progress) -> None:
        """Keeps the lease, sends the commit index, and detects lost messages."""
        if peer.phase is ProgressState.PROBING and peer.next_index >= self._core.tail.first_index:
            self._append(peer, self._core.tail.entries_from(peer.next_index, self._append_bytes(peer)))
            return
        if peer.observer and self._send_gathered(peer):
            return
        # The peer is known to have the entry before, so that it never has to reject.
        index = peer.received_index if self._core.tail.term_at(peer.received_index) is not None else LogIndex(0)
        self._send(peer, index, (), prompt=True)
        if peer.phase is ProgressState.PROBING:
            self.send(peer)
        elif peer.phase is ProgressState.SNAPSHOT:
            self._resume_snapshot(peer)

    def _send_gathered(self, peer: Progress) -> bool:
        """To a secondary, instead of a heartbeat: sends the entries that have waited for one."""
        tail = self._core.tail
        if peer.phase is not ProgressState.STREAMING or not peer.has_room or peer.next_index > tail.last_index:
            return False
        if peer.next_index < tail.first_index:
            # A root that is the only primary keeps nothing in memory. A heartbeat goes out now, the entries follow.
            self._fetch(peer)
            return False
        self._append(peer, tail.entries_from(peer.next_index, self._append_bytes(peer)))
        return True

    def tell_commit(self, peer: Progress) -> None:
        """Sends the commit index at once to a peer that is sent nothing else; no reply is needed."""
        core = self._core
        if peer.observer:
            # While it gets a snapshot the last entry that it has may be reclaimed here; the snapshot is committed.
            is_untold = self.news.is_untold(peer) and core.tail.term_at(peer.received_index) is not None
        else:
            is_behind = peer.told_index < core.commit_index
            is_untold = peer.in_sync and is_behind and peer.received_index >= core.tail.last_index
        if is_untold:
            self._send(peer, peer.received_index, (), prompt=False)

    def _append(self, peer: Progress, entries: tuple[LogEntry, ...]) -> None:
        first_index = peer.next_index
        last_index = LogIndex(first_index + len(entries) - 1)
        if self._core.tail.term_at(LogIndex(first_index - 1)) is None:
            self._begin_snapshot(peer)
            return
        # A secondary's position should be known at once: so it also gets the commit index at once.
        prompt = peer.phase is ProgressState.PROBING or peer.observer or first_index <= self.prompt_index
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

    def refused(self, peer: Progress, message: AppendRejected) -> None:
        """Searches for an entry that both have, from where the peer suggests one."""
        peer.waiting = False
        if message.prev_index <= peer.received_index or message.prev_index >= peer.next_index:
            # A reply to an obsolete append: the peer is known to have that entry.
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
        is_wanted = (
            completion.first_index == peer.next_index and peer.phase is not ProgressState.SNAPSHOT and peer.has_room
        )
        if is_wanted and self._is_in_log(completion):
            self._append(peer, completion.entries)
        self.send(peer)

    def _is_in_log(self, completion: Fetched) -> bool:
        """An earlier term of this root may have requested these entries, and the log may have been cut since. Two logs
        that have an entry of the same index and term are equal up to there."""
        last_index = LogIndex(completion.first_index + len(completion.entries) - 1)
        return self._core.tail.term_at(last_index) == completion.entries[-1].term

    def missing(self, peer: Progress, completion: Missing) -> None:
        if peer.fetching and completion.first_index == peer.next_index:
            peer.fetching = False
            self._begin_snapshot(peer)

    # Snapshots.

    def _begin_snapshot(self, peer: Progress) -> None:
        peer.phase = ProgressState.SNAPSHOT
        peer.waiting = peer.in_sync = False
        peer.transfer = SnapshotTransfer(self._core.now_ms)
        self._read_piece(peer, peer.transfer)

    def _read_piece(self, peer: Progress, transfer: SnapshotTransfer) -> None:
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
        """A newer one has replaced it, or there is none yet: the next heartbeat tries again."""
        transfer = peer.transfer
        if transfer is not None and transfer.reading and completion.source == transfer.source:
            peer.transfer = None

    def _resume_snapshot(self, peer: Progress) -> None:
        """Called with each heartbeat. If a peer has taken nothing for a lease, all pieces that it has not acknowledged
        are sent again."""
        transfer = peer.transfer
        if transfer is None:
            self._begin_snapshot(peer)
            return
        if self._core.now_ms - transfer.progress_ms > self._core.settings.lease_ms:
            transfer.progress_ms = self._core.now_ms
            # A peer that has taken all pieces checks them before it reports; sending the last one again finds out the
            # result.
            transfer.rewind(min(transfer.taken, max(transfer.next_number - 1, 0)))
        self._read_piece(peer, transfer)

    def snapshot_answered(self, peer: Progress, message: SnapshotAnswer) -> None:
        transfer = peer.transfer
        if transfer is None or message.source != transfer.source:
            return
        if message.installed:
            # It may have more: an entry that this root cannot read is behind its own snapshot.
            peer.probe(LogIndex(max(transfer.index, peer.synced_index) + 1))
            self.send(peer)
            return
        if message.taken != transfer.taken:
            # Fewer than before if it had to begin again.
            transfer.taken = message.taken
            transfer.progress_ms = self._core.now_ms
            # More than before if the link broke on the way: it continues with the piece after the last one that it has.
            transfer.next_number = max(transfer.next_number, message.taken - 1)
        transfer.raw_to = max(transfer.raw_to, message.raw_to)
        if message.wanted is not None and message.wanted < transfer.next_number:
            transfer.rewind(message.wanted)
        self._read_piece(peer, transfer)
