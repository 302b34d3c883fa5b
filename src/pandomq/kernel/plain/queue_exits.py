"""How messages leave a queue for good: acked, expired, overflowed, rejected, out of date, purged, withdrawn, dropped.

Each message that leaves goes through `gone`, which logs it, or through `forget`, if the log has it anyway.
"""

from typing import TYPE_CHECKING

from pandomq.kernel.constants import ABSENT, ACK, EXPIRED, MAXLEN, NEVER_MS, PLACE_UNKNOWN, REJECTED, SETTLED
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.page import Page
from pandomq.kernel.plain.queue_pages import QueuePages
from pandomq.kernel.plain.ring import RingEntry
from pandomq.kernel.plain.settings import Settings

if TYPE_CHECKING:
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.trace import Trace


class QueueExits(QueuePages):
    """The part of a queue that removes messages."""

    queue_id: int
    logged: bool
    acked: int

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.settings = Settings()
        self.trace: Trace | None = None
        self.label = b""
        self.deleted = False
        self.dropped = 0
        self.gone_first = 0  # a range of dequeued sequences that the log batch has not written yet
        self.gone_count = 0
        self._armed_for_ms = NEVER_MS
        self.is_unsealed = False  # a message left unseen in this batch
        self.unseen_index = 0  # the entry that records that, while it is not committed

    @property
    def waits_for_log(self) -> bool:
        """Nothing may be delivered: a message left that no consumer received, and the log may still lose that record.
        Then the message comes back, and must not follow those that were behind it."""
        return self.is_unsealed or self.unseen_index > self.engine.commit_index

    @property
    def head_missing(self) -> bool:
        return self.ready.head_missing or (self.waits_for_log and self.ready.count > 0)

    def gone(self, entry: RingEntry) -> None:
        """The message left the queue for good."""
        self._log(entry.sequence, entry.message.kept)
        self.forget(entry)

    def gone_unseen(self, entry: RingEntry) -> None:
        self.left_unseen(entry.message.kept)
        self.gone(entry)

    def forget(self, entry: RingEntry) -> None:
        if self.last_values is not None:
            self.last_values.leave(self.last_values.key_of(entry.message), entry.sequence)
        self.engine.let_go(entry.message)

    def gone_from_page(self, page: Page, position: int) -> None:
        """Records that a message that is not in memory has left the queue."""
        self.left_unseen(page.is_kept(position))
        self._log(page.first + page.offset(position), page.is_kept(position))
        self.forget_paged(page, position)

    def forget_paged(self, page: Page, position: int) -> None:
        if self.last_values is not None and page.keys is not None:
            self.last_values.leave(page.keys[position], page.first + page.offset(position))

    def _log(self, sequence: int, kept: bool) -> None:
        if self.logged and kept and not self.deleted:
            self.engine.log.dequeue(self, sequence)

    def left_unseen(self, kept: bool) -> None:
        """A message leaves that was not delivered."""
        if self.logged and kept and not self.deleted and not self.is_unsealed:
            self.is_unsealed = True
            self.engine.unsealed_queues.append(self)

    def await_log(self) -> None:
        self.left_unseen(True)

    def die(self, entry: RingEntry, reason: int) -> None:
        """Sends the message to the dead letters, if the queue has them."""
        self.dropped += 1
        is_letter = self.settings.dead_letters and not self.deleted
        if self.trace is not None:
            self.trace.died(self, entry, reason, is_letter)
        if is_letter:
            self.engine.dead.append((self, entry.message, reason, entry.delivery_count))
        self.gone(entry)

    def die_unseen(self, entry: RingEntry, reason: int) -> None:
        self.left_unseen(entry.message.kept)
        self.die(entry, reason)

    def drop_surplus(self) -> None:
        # From the head: the message that would be delivered next is dropped first, even if it has the highest priority.
        while self.ready.count and self.settings.overflowed_by(self.ready, 0, 0):
            if self.ready.head_missing:
                self.ready.want_head()
                return
            self.die_unseen(self.ready.pop_first(), MAXLEN)

    def withdraw(self, sequence: int) -> Message | None:
        entry = self.ready.remove(sequence)
        if entry is None:
            return None
        self.gone(entry)
        self.watch_time()
        return entry.message

    def settle_ready(self, sequence: int, term: int, method_id: int) -> int:
        """See Channel.settle_place."""
        entry = self.ready.remove(sequence, term)
        if entry is None:
            return self._settle_paged(sequence, term, method_id)
        if method_id == ACK:
            self.engine.acked += 1
            self.acked += 1
            self.gone(entry)
        else:
            self.die(entry, REJECTED)
        self.watch_time()
        return SETTLED

    def _settle_paged(self, sequence: int, term: int, method_id: int) -> int:
        for page in self.pages():
            position = page.find(sequence)
            if position is None:
                continue
            if page.term and page.term != term:
                return ABSENT
            if not page.term or method_id != ACK:
                return PLACE_UNKNOWN
            self.engine.acked += 1
            self.acked += 1
            self.gone_from_page(page, position)
            if self.remove_paged(page, position):
                self.pages_went()
            self.watch_time()
            return SETTLED
        return ABSENT

    def purge(self) -> int:
        return self.clear(log=True)

    def clear(self, log: bool) -> int:
        """All ready messages leave."""
        pages = self.ready.pages()
        everything = self.ready.clear()
        for one in everything:
            if isinstance(one, RingEntry):
                (self.gone_unseen if log else self.forget)(one)
            else:
                (self.gone_from_page if log else self.forget_paged)(*one)
        for page in pages:
            self.free(page)
        self.weigh()
        return len(everything)

    def drop(self, sequence_first: int, count: int) -> None:
        for sequence in self.ready.in_memory(sequence_first, count):
            entry = self.ready.remove(sequence)
            assert entry is not None
            self.forget(entry)
        went = False
        for page in self.ready.pages():
            for position in page.find_range(sequence_first, count):
                self.forget_paged(page, position)
                went |= self.remove_paged(page, position)
        if went:
            self.pages_went()
        self.watch_time()

    # --- time

    def expire(self, now_ms: int) -> None:
        if self.ready.with_deadline:
            for level in self.ready.levels():
                while len(level.head) and level.head.first.deadline_ms <= now_ms:
                    self.die_unseen(self.ready.pop_head(level), EXPIRED)
                if level.head_missing:
                    if level.next_deadline_ms <= now_ms:
                        self.engine.wanted += level.read_ahead()
                    # Messages of lower priority wait, so that dead letters keep their order.
                    if level.pages[0].wanted:
                        break
        self.watch_time()

    @property
    def next_deadline_ms(self) -> int:
        return self.ready.next_deadline_ms

    @property
    def timer_armed(self) -> bool:
        return self._armed_for_ms != NEVER_MS

    @timer_armed.setter
    def timer_armed(self, armed: bool) -> None:
        self._armed_for_ms = min(self.next_deadline_ms, NEVER_MS - 1) if armed else NEVER_MS

    def watch_time(self) -> None:
        # A timer for a later time than needed has no use.
        if self.ready.with_deadline and self.next_deadline_ms < self._armed_for_ms:
            self._armed_for_ms = NEVER_MS
            self.engine.waiting_for_time.append(self)
