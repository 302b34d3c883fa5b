"""All queues and sessions of one broker, and the batch that is being worked on."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from pandomq.kernel.constants import BASIC, CONFIRM, MANDATORY, PUBLISH, TRANSACTION
from pandomq.kernel.plain import mirrors, relay
from pandomq.kernel.plain.channel import Channel
from pandomq.kernel.plain.chunk import Chunk
from pandomq.kernel.plain.consumer import Consumer
from pandomq.kernel.plain.fan_out import fan_out
from pandomq.kernel.plain.log import LogBatch
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.paging import EnginePaging
from pandomq.kernel.plain.queue import Queue
from pandomq.kernel.plain.queue_exits import QueueExits
from pandomq.kernel.plain.queue_stream import QueueStream
from pandomq.kernel.plain.replay import replay
from pandomq.kernel.plain.routes import Routes
from pandomq.kernel.plain.runs import DeliveryRun, PublishRun, SettleRun
from pandomq.kernel.plain.session import Session


class Engine(EnginePaging):
    """See the contract."""

    def __init__(self, hooks: Any) -> None:
        super().__init__()
        self.hooks = hooks
        self.term = 0
        self.commit_index = 0
        self.received_index = 0
        self.replicated = False
        self.prompt = False
        self.time_us = 0
        self.publishing: Channel | None = None  # of a traced session, while its message goes to queues
        self.sealed_index = 0
        self.batch = 1
        self.outlets_batch = 0  # everything that batches up to this one put into outlets has come out
        self.has_outlets = False
        self.dead: list[tuple[QueueExits, Message, int, int]] = []
        self.returned: list[tuple[Channel, Message, int]] = []
        self.waiting_for_time: list[QueueExits] = []
        self.numbered: list[Channel] = []
        self.full_chunks: list[tuple[QueueStream, Chunk]] = []
        self.wanted_chunks: list[Consumer] = []
        self.held_bytes = 0
        self.held_messages = 0
        self.moves = 0  # counts changes of who holds messages, and consumers that came and went
        self.published = 0
        self.unroutable = 0
        self.delivered = 0
        self.redelivered = 0
        self.acked = 0
        self.confirmed = 0
        self.log = LogBatch()
        self._nowhere: Queue | None = None
        self.active_queues: deque[Any] = deque()
        self.waking_channels: list[Channel] = []
        self.touched_channels: list[Channel] = []
        self.dirty_sessions: list[Session] = []
        # The channels with confirms that wait for an index; indexes never decrease.
        self.confirms_waiting: deque[tuple[int, Channel]] = deque()
        # The same for channels that wait for a batch to come out of outlets, and for the receipt of an entry.
        self.outlets_waiting: deque[tuple[int, Channel]] = deque()
        self.receipts_waiting: deque[tuple[int, Channel]] = deque()
        # Queues that messages left unseen in this batch, and those that wait until the log has recorded that.
        self.unsealed_queues: list[QueueExits] = []
        self.queues_waiting: deque[tuple[int, QueueExits]] = deque()
        # Streams that got messages in this batch, and the ends up to which they are readable when an index is
        # committed.
        self.unsealed_streams: list[QueueStream] = []
        self.streams_waiting: deque[tuple[int, QueueStream, int]] = deque()

    @property
    def nowhere(self) -> Queue:
        """The places of unacked messages that were settled by place. Most engines never need it."""
        if self._nowhere is None:
            self._nowhere = Queue(self, None, 0, False)
            self._nowhere.delete()
        return self._nowhere

    # --- in

    def publish(self, session: Session, run: PublishRun, now_ms: int) -> None:
        if session.uplink is not None:
            relay.publish(self, session, run, now_ms)
            return
        hooks, channels, find = self.hooks, session.channels, session.routes.find
        for number, message, flags in run.items:
            channel = channels.get(number)
            if channel is None:
                if not session.closed:
                    hooks.unknown_channel(session, number, BASIC, PUBLISH)
                return
            if not channel.open:
                continue
            self.published += 1
            repeated = channel.count_publish(message)
            plan = None
            if not repeated and not message.special and flags <= MANDATORY and channel.mode != TRANSACTION:
                plan = find(message.routing)
            if plan is None:
                hooks.publish(channel, message, flags)
            else:
                self.enqueue(channel, message, plan.queues, flags, now_ms)

    def enqueue(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int
    ) -> bool:
        self.publishing = None if channel is None or channel.session.trace is None else channel
        accepted = self._enqueue(channel, message, queues, flags, now_ms)
        self.publishing = None
        return accepted

    def _enqueue(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int
    ) -> bool:
        if not queues:
            self.unroutable += 1
            if channel is not None and channel.session.trace is not None:
                channel.session.trace.unroutable(message)
            if flags & MANDATORY and channel is not None:
                self.returned.append((channel, message, flags))
                if channel.is_held:
                    # The return is sent behind the replies, and the confirm after the return.
                    channel.publish_waits()
            return True
        if self.has_outlets and channel is not None and any(queue.is_outlet for queue in queues):
            channel.publish_awaited()
        is_logged = message.kept or self.replicated or queues[0].stream is not None
        if len(queues) == 1 and not (queues[0].deleted or queues[0].may_refuse or is_logged):
            queues[0].insert(message, now_ms)
            return True
        present = [queue for queue in queues if not queue.deleted]
        accepting = [queue for queue in present if not queue.may_refuse or not queue.refuses(message, now_ms)]
        logging = self._logging(message, accepting)
        self._log_enqueue(channel, message, logging)
        unkept = self._unkept(message, accepting, is_logged=bool(logging))
        for queue in accepting:
            queue.insert(unkept if queue.local else message, now_ms)
        if len(accepting) == len(present):
            return True
        if channel is not None:
            self.refuse(channel)
        return False

    def prepare(
        self, channel: Channel | None, message: Message, queues: Sequence[Queue], flags: int, now_ms: int, keep: bool
    ) -> tuple[bool, list[tuple[Queue, int, int, int]]]:
        if not queues:
            return self.enqueue(channel, message, queues, flags, now_ms), []
        present = [queue for queue in queues if not queue.deleted]
        accepting = [queue for queue in present if not queue.may_refuse or not queue.refuses(message, now_ms)]
        message.kept |= keep
        self._log_enqueue(channel, message, self._logging(message, accepting))
        if self.replicated and any(queue.local for queue in present):
            message.kept = False
        places = [
            (queue, queue.await_message(message, now_ms), self.term, queue.settings.deadline_ms(message, now_ms))
            for queue in accepting
        ]
        return len(accepting) == len(present), places

    def admit(self, message: Message, places: Sequence[tuple[Queue, int, int, int]]) -> None:
        for queue, sequence, term, deadline_ms in places:
            queue.admit(message, sequence, term, deadline_ms)

    def _logging(self, message: Message, queues: list[Queue]) -> list[Queue]:
        """The queues for which it is logged: a message that enters a stream is always logged."""
        if self.replicated:
            return [queue for queue in queues if queue.logged and not queue.local]
        if message.kept:
            return [queue for queue in queues if queue.logged]
        return [queue for queue in queues if queue.stream is not None]

    def _unkept(self, message: Message, queues: list[Queue], *, is_logged: bool) -> Message:
        """The message for local queues, which it leaves without a record. Logged queues have it themselves."""
        if not self.replicated or not any(queue.local for queue in queues):
            return message
        if is_logged or message.holders:
            return message.unkept_copy()
        message.kept = False
        return message

    def _log_enqueue(self, channel: Channel | None, message: Message, queues: list[Queue]) -> None:
        if queues:
            self.log.enqueue(message, queues)
            message.kept |= self.replicated
            if channel is not None:
                channel.publish_logged()
                if self.replicated:
                    self._choose_confirm(channel, message, queues)

    def _choose_confirm(self, channel: Channel, message: Message, queues: list[Queue]) -> None:
        if message.persistent or any(queue.synced for queue in queues):
            channel.confirms.early.needs_commit(channel.confirms.published)
        elif channel.mode == CONFIRM and not channel.confirms.early.is_barred(self.commit_index):
            self.prompt = True

    def forward(self, channel: Channel, message: Message, flags: int) -> None:
        relay.forward(channel, message, flags)

    def relay_confirms(self, session: Session, run: SettleRun) -> None:
        relay.relay_confirms(self, session, run)

    def refuse(self, channel: Channel) -> None:
        if channel.mode == CONFIRM:
            channel.confirms.refuse()

    def repeat(self, channel: Channel) -> None:
        if channel.mode == CONFIRM:
            channel.publish_waits()
            if self.replicated:
                channel.confirms.early.needs_commit(channel.confirms.published)

    def restore(self, message: Message, places: Sequence[tuple[Queue, int, int]], now_ms: int) -> None:
        for queue, sequence, term in places:
            if not queue.deleted:
                queue.restore(message, sequence, term, now_ms)

    def replay(self, entry: bytes, term: int, hooks: Any) -> None:
        replay(entry, term, hooks)

    def fan_out(self, routes: Routes, owner: Any, run: DeliveryRun, seen: dict[int, int], now_ms: int) -> None:
        fan_out(self, routes, owner, run, seen, now_ms)

    def mirror(self, session: Session, run: DeliveryRun, now_ms: int) -> None:
        mirrors.mirror(self, session, run, now_ms)

    def settle(self, session: Session, run: SettleRun, now_ms: int) -> None:
        before: Channel | None = None
        for number, method_id, tag, multiple, requeue in run.items:
            channel = session.channels.get(number)
            if before is not None and channel is not before:
                before.mirrors.flush()
            before = channel
            if channel is None:
                if not session.closed:
                    self.hooks.unknown_channel(session, number, BASIC, method_id)
                return
            if not channel.open:
                continue
            if channel.mode == TRANSACTION:
                self.hooks.settle(channel, method_id, tag, multiple, requeue)
            elif not channel.settle(method_id, tag, multiple, requeue):
                channel.mirrors.flush()
                self.hooks.unknown_tag(channel, method_id, tag)
        if before is not None:
            before.mirrors.flush()

    def settle_one(
        self, channel: Channel, method_id: int, tag: int, multiple: bool, requeue: bool, now_ms: int
    ) -> None:
        if not channel.settle(method_id, tag, multiple, requeue):
            self.hooks.unknown_tag(channel, method_id, tag)
        channel.mirrors.flush()

    # --- what is held

    @property
    def changes(self) -> int:
        return self.moves + self.log.total

    def hold(self, message: Message) -> None:
        if not message.holders:
            self.held_messages += 1
            self.held_bytes += message.held_bytes
        message.holders += 1
        self.moves += 1

    def let_go(self, message: Message) -> None:
        message.holders -= 1
        self.moves += 1
        if not message.holders:
            self.held_messages -= 1
            self.held_bytes -= message.held_bytes

    # --- out

    @property
    def active(self) -> bool:
        return bool(self.active_queues or self.waking_channels)

    def deliver(self, now_ms: int) -> None:
        # A woken consumer may find that another one took its message; then its channel's credit goes to the next.
        check_again: list[Channel] = []
        while True:
            for channel in self._woken_channels():
                if channel.wake():
                    check_again.append(channel)
            if self.active_queues:
                queue = self.active_queues.popleft()
                queue.is_active = False
                queue.run(now_ms)
            elif check_again:
                for channel in check_again:
                    channel.wake_later()
                check_again = []
            elif not self.waking_channels:
                return

    def _woken_channels(self) -> list[Channel]:
        channels, self.waking_channels = self.waking_channels, []
        for channel in channels:
            channel.is_waking = False
        return channels

    def take_dirty(self) -> list[Session]:
        sessions, self.dirty_sessions = self.dirty_sessions, []
        for session in sessions:
            session.is_dirty = False
        return [session for session in sessions if session.pending_bytes]

    # --- log

    def log_command(self, command: bytes) -> None:
        self.log.command(command)

    @property
    def deferrable(self) -> int:
        if self.unsealed_queues or self.unsealed_streams:
            return 0
        if any(channel.confirms.awaits_seal for channel in self.touched_channels):
            return 0
        return self.log.removal_count

    def seal(self, now_ms: int) -> bytes | None:
        return self.log.seal(now_ms)

    def sealed(self, index: int) -> None:
        if not index and self.log.removal_count:
            return
        self.sealed_index = index or self.sealed_index
        self.prompt = False
        channels, self.touched_channels = self.touched_channels, []
        for channel in channels:
            channel.is_touched = False
            channel.confirms.sealed(self.sealed_index)
        queues, self.unsealed_queues = self.unsealed_queues, []
        for queue in queues:
            queue.is_unsealed = False
            queue.unseen_index = self.sealed_index
            self.queues_waiting.append((self.sealed_index, queue))
        self._seal_streams()
        self.batch += 1

    def _seal_streams(self) -> None:
        streams, self.unsealed_streams = self.unsealed_streams, []
        for queue in streams:
            assert queue.stream is not None
            queue.stream.is_unsealed = False
            self.streams_waiting.append((self.sealed_index, queue, queue.next_sequence - 1))

    def outlets_received(self, batch: int) -> None:
        self.outlets_batch = max(self.outlets_batch, batch)
        while self.outlets_waiting and self.outlets_waiting[0][0] <= self.outlets_batch:
            self.outlets_waiting.popleft()[1].confirms.committed(self.commit_index)

    def await_receipt(self, index: int, channel: Channel) -> None:
        if index <= self.received_index:
            channel.confirms.received(self.received_index)
        else:
            self.receipts_waiting.append((index, channel))

    def received(self, index: int) -> None:
        self.received_index = max(self.received_index, index)
        while self.receipts_waiting and self.receipts_waiting[0][0] <= self.received_index:
            self.receipts_waiting.popleft()[1].confirms.received(self.received_index)

    def committed(self, index: int) -> None:
        self.commit_index = max(self.commit_index, index)
        while self.confirms_waiting and self.confirms_waiting[0][0] <= self.commit_index:
            self.confirms_waiting.popleft()[1].confirms.committed(self.commit_index)
        self.received(index)
        while self.queues_waiting and self.queues_waiting[0][0] <= self.commit_index:
            self.queues_waiting.popleft()[1].activate_if_ready()
        while self.streams_waiting and self.streams_waiting[0][0] <= self.commit_index:
            _, queue, end = self.streams_waiting.popleft()
            assert queue.stream is not None
            queue.stream.commit(end)

    def check(self) -> None:
        self.log.check()
        self.check_paging()
        assert self.held_messages >= 0
        assert (self.held_messages == 0) == (self.held_bytes == 0)
        assert all(queue.is_active for queue in self.active_queues)
        assert all(channel.is_waking for channel in self.waking_channels)
        indexes = [index for index, _ in self.confirms_waiting]
        assert indexes == sorted(indexes)
