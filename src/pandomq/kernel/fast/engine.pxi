# All queues and sessions of one broker, and the batch that is being worked on.

@cython.final
cdef class Engine:
    cdef object hooks
    cdef public list dead
    cdef public list returned
    cdef public list waiting_for_time
    cdef public list wanted
    cdef public list freed
    cdef public list numbered
    cdef public list full_chunks
    cdef public list wanted_chunks
    cdef object long_queues  # in turn; see plain/paging.py
    cdef object short_queues
    cdef list waking_channels
    cdef list touched_channels
    cdef list dirty_sessions
    cdef list dequeuing  # queues with an unwritten range of dequeues, in the order in which those began
    cdef object confirms_waiting  # (index, channel) in order of the index
    cdef object outlets_waiting  # (batch, channel): those that wait for outlets
    cdef object receipts_waiting  # the same for channels that wait until the entry is received
    cdef list unsealed_queues  # queues that messages left unseen in this batch
    cdef object queues_waiting  # (index, queue): queues that wait until the log has recorded that
    cdef list unsealed_streams  # those to which something was added in this batch
    cdef object streams_waiting  # (index, queue, end): the end of the stream when that index is committed
    cdef list active_queues  # those to run, from `active_next` on
    cdef Py_ssize_t active_next
    cdef LogBatch log
    cdef Queue nowhere  # see engine_nowhere
    cdef Pattern pattern
    cdef uint64_t round  # counts the messages for which queues were asked whether they accept them
    cdef public uint64_t term
    cdef public uint64_t commit_index
    cdef uint64_t received_index
    cdef uint64_t sealed_index
    cdef readonly uint64_t batch
    cdef uint64_t outlets_batch  # everything that batches up to this one put into outlets has come out
    cdef readonly uint64_t held_bytes
    cdef readonly uint64_t held_messages
    cdef uint64_t moves  # counts changes of who holds messages, and consumers that came and went
    cdef public uint64_t paging_bytes
    cdef public uint64_t page_bytes
    cdef public uint64_t page_messages
    cdef readonly uint64_t ready_bytes
    cdef readonly uint64_t published
    cdef readonly uint64_t unroutable
    cdef readonly uint64_t delivered
    cdef readonly uint64_t redelivered
    cdef readonly uint64_t acked
    cdef readonly uint64_t confirmed
    cdef public bint replicated
    cdef readonly bint prompt
    cdef public int64_t time_us  # the time of events in traces
    cdef PyObject* publishing  # the channel of a traced session, while its message goes to queues

    def __init__(self, hooks):
        self.hooks = hooks
        self.dead = []
        self.returned = []
        self.waiting_for_time = []
        self.wanted = []
        self.freed = []
        self.numbered = []
        self.full_chunks = []
        self.wanted_chunks = []
        self.long_queues = OrderedDict()
        self.short_queues = OrderedDict()
        self.page_bytes = PAGE_BYTES
        self.page_messages = PAGE_MESSAGES
        self.active_queues = []
        self.waking_channels = []
        self.touched_channels = []
        self.dirty_sessions = []
        self.dequeuing = []
        self.batch = 1
        self.confirms_waiting = deque()
        self.outlets_waiting = deque()
        self.receipts_waiting = deque()
        self.unsealed_queues = []
        self.queues_waiting = deque()
        self.unsealed_streams = []
        self.streams_waiting = deque()

    def __dealloc__(self):
        output_clear(&self.log.output)
        free(self.pattern.data)

    # --- in

    def publish(self, Session session not None, PublishRun run not None, int64_t now_ms):
        cdef size_t at
        cdef Publish* item
        cdef Message message
        cdef Channel channel = None
        cdef RouteSlot* slot
        cdef Outlook outlook
        cdef bint is_traced = session.trace is not None
        if session.uplink is not None:
            relay_publish(self, session, run, now_ms)
            return
        outlook_begin(&outlook)
        for at in range(run.size):
            item = &run.items[at]
            if channel is None or channel.number != item.channel:
                channel = session.channels.get(item.channel)
                if channel is None:
                    if not session.closed:
                        self.hooks.unknown_channel(session, item.channel, C_BASIC, C_PUBLISH)
                    return
            slot = outlook_turn_to(&outlook, session.routes, run, at)
            if not channel.open:
                continue
            self.published += 1
            message = <Message>item.message
            if channel.mode == C_CONFIRM and channel.count_publish(message):
                slot = NULL
            if slot == NULL or message.special or item.flags > C_MANDATORY or channel.mode == C_TRANSACTION:
                # A hook may have closed channels, opened others, and changed routes: cached state is invalid after it.
                self.publishing = NULL
                self.hooks.publish(channel, run.routed_message(item), item.flags)
                channel = None
                continue
            message.routing = <bytes>slot.routing
            if is_traced:
                self.publishing = <PyObject*>channel
            if (<Plan>slot.plan).only != NULL:
                self.distribute_to_one(channel, message, <Plan>slot.plan, now_ms)
            else:
                self.distribute(channel, message, (<Plan>slot.plan).queues, item.flags, now_ms)
        self.publishing = NULL

    def enqueue(self, Channel channel, Message message not None, queues, int flags, int64_t now_ms):
        self.publishing = NULL
        if channel is not None and channel.session.trace is not None:
            self.publishing = <PyObject*>channel
        accepted = self.distribute(channel, message, queue_tuple(queues), flags, now_ms)
        self.publishing = NULL
        return accepted

    cdef inline bint distribute(self, Channel channel, Message message, tuple queues, int flags,
                                int64_t now_ms) except -1:
        # True if no queue refused the message.
        cdef Py_ssize_t size = PyTuple_GET_SIZE(queues)
        cdef Py_ssize_t at
        cdef PyObject* queue
        if size == 0:
            self.unroutable += 1
            if channel is not None and channel.session.trace is not None:
                trace_unroutable(channel.session.trace, message)
            if flags & C_MANDATORY and channel is not None:
                self.returned.append((channel, message, flags))
                if channel.is_held:
                    # The return is sent behind the replies, and the confirm after the return.
                    channel.publish_waits()
            return True
        for at in range(size):
            if (<Queue>PyTuple_GET_ITEM(queues, at)).is_asked:
                return distribute_to_willing(self, channel, message, queues, now_ms)
        if message.kept or self.replicated:
            self.log_message(channel, message, queues, 0)
        if size >= MANY_QUEUES:
            insert_into_many(self, message, queues, now_ms)
            return True
        for at in range(size):
            queue = PyTuple_GET_ITEM(queues, at)
            if not (<Queue>queue).deleted:
                (<Queue>queue).insert(message, now_ms)
        return True

    cdef inline int distribute_to_one(self, Channel channel, Message message, Plan plan, int64_t now_ms) except -1:
        # Like distribute, to the only queue of a plan.
        cdef Queue queue = <Queue>plan.only
        if queue.is_asked:
            if queue.local and self.replicated and not (queue.may_refuse or queue.deleted or message.holders):
                message.kept = False
                return queue.insert(message, now_ms)
            distribute_to_willing(self, channel, message, plan.queues, now_ms)
            return 0
        if (message.kept or self.replicated) and log_enqueue(&self.log, message, plan.queues, 0):
            channel.publish_logged()
            if self.replicated:
                self.replicate(channel, message, plan.queues, 0)
        return 0 if queue.deleted else queue.insert(message, now_ms)

    cdef int log_message(self, Channel channel, Message message, tuple queues, uint64_t round) except -1:
        # 1 if one of the queues logs it.
        if not log_enqueue(&self.log, message, queues, round):
            return 0
        if channel is not None:
            channel.publish_logged()
        if self.replicated:
            self.replicate(channel, message, queues, round)
        return 1

    cdef int replicate(self, Channel channel, Message message, tuple queues, uint64_t round) except -1:
        # The message is in the batch's entry, and other brokers keep the log, too.
        message.kept = True
        if channel is not None:
            confirms_choose(channel, message.persistent or log_is_synced(queues, round))
        return 0

    def prepare(self, Channel channel, Message message not None, queues, int flags, int64_t now_ms, bint keep):
        return prepare_places(self, channel, message, queue_tuple(queues), flags, now_ms, keep)

    def admit(self, Message message not None, places):
        cdef Queue queue
        for queue, sequence, term, deadline_ms in places:
            queue.admit(message, sequence, term, deadline_ms)

    def forward(self, Channel channel not None, Message message not None, int flags):
        relay_forward(channel, message, <uint16_t>flags)

    def relay_confirms(self, Session session not None, SettleRun run not None):
        relay_down(self, session, run)

    def refuse(self, Channel channel not None):
        if channel.mode == C_CONFIRM:
            confirms_refuse(channel)

    def repeat(self, Channel channel not None):
        if channel.mode == C_CONFIRM:
            confirms_repeat(channel)

    def restore(self, Message message not None, places, int64_t now_ms):
        cdef Queue queue
        for queue, sequence, term in places:
            if not queue.deleted:
                queue.restore(message, sequence, term, now_ms)

    def fan_out(self, Routes routes not None, owner, DeliveryRun run not None, dict seen not None, int64_t now_ms):
        fan_out_run(self, routes, owner, run, seen, now_ms)

    def mirror(self, Session session not None, DeliveryRun run not None, int64_t now_ms):
        mirror_run(self, session, run, now_ms)

    def settle(self, Session session not None, SettleRun run not None, int64_t now_ms):
        settle_run(self, session, run)

    def settle_one(self, Channel channel not None, int method_id, uint64_t tag, bint multiple, bint requeue,
                   int64_t now_ms):
        settle_alone(self, channel, method_id, tag, multiple, requeue)

    # --- what is held

    @property
    def changes(self):
        return self.moves + self.log.total

    cdef inline void hold(self, Message message) noexcept:
        if message.holders == 0:
            self.held_messages += 1
            self.held_bytes += message.held_bytes
        message.holders += 1
        self.moves += 1

    cdef inline void let_go(self, Message message) noexcept:
        message.holders -= 1
        self.moves += 1
        if message.holders == 0:
            self.held_messages -= 1
            self.held_bytes -= message.held_bytes

    # --- out

    cdef inline Queue next_active(self):
        # None if there is none left.
        cdef Queue queue
        if self.active_next == PyList_GET_SIZE(self.active_queues):
            if self.active_next:
                self.active_queues.clear()
                self.active_next = 0
            return None
        outlook_to_queues(self.active_queues, self.active_next)
        queue = <Queue>PyList_GET_ITEM(self.active_queues, self.active_next)
        self.active_next += 1
        queue.is_active = False
        return queue

    @property
    def active(self):
        return PyList_GET_SIZE(self.active_queues) > self.active_next or PyList_GET_SIZE(self.waking_channels) > 0

    def deliver(self, int64_t now_ms):
        # A woken consumer may find that another one took its message; then its channel's credit goes to the next.
        cdef list check_again = []
        cdef list channels
        cdef Channel channel
        cdef Queue queue
        while True:
            if PyList_GET_SIZE(self.waking_channels):
                channels, self.waking_channels = self.waking_channels, []
                for channel in channels:
                    channel.is_waking = False
                for channel in channels:
                    if channel.wake():
                        check_again.append(channel)
            queue = self.next_active()
            if queue is not None:
                queue.run(now_ms)
            elif PyList_GET_SIZE(check_again):
                for channel in check_again:
                    channel.wake_later()
                check_again = []
            elif PyList_GET_SIZE(self.waking_channels) == 0:
                return

    def take_dirty(self):
        cdef Session session
        cdef list sessions = self.dirty_sessions
        cdef list pending = []
        self.dirty_sessions = []
        for session in sessions:
            session.is_dirty = False
            if session.output.size:
                pending.append(session)
        return pending

    # --- pages

    cdef int rank_queue(self, Queue queue, int rank) except -1:
        return paging_rank(self, queue, rank)

    def page_out(self, uint64_t bytes_max):
        return paging_out(self, bytes_max)

    def loaded(self, Page page not None, bytes data not None):
        paging_loaded(page, data)

    # --- log

    def replay(self, bytes entry not None, uint64_t term, hooks):
        replay_entry(entry, term, hooks)

    cdef inline int log_dequeue(self, Queue queue, uint64_t sequence) except -1:
        self.moves += 1
        if queue.gone_count == 0:
            self.dequeuing.append(queue)
        elif sequence == queue.gone_first + queue.gone_count:
            queue.gone_count += 1
            return 0
        else:
            log_range(&self.log, queue)
        queue.gone_first = sequence
        queue.gone_count = 1
        return 0

    def log_command(self, bytes command not None):
        log_ranges(&self.log, self.dequeuing)
        log_command(&self.log, command)

    @property
    def deferrable(self):
        cdef Channel channel
        if self.log.has_additions or PyList_GET_SIZE(self.unsealed_queues) or PyList_GET_SIZE(self.unsealed_streams):
            return 0
        for channel in self.touched_channels:
            # The batch has publishes to confirm; otherwise it may have acks, which only later confirms wait for.
            if channel.confirms.published > channel.confirms.planned:
                return 0
        return self.log.count + PyList_GET_SIZE(self.dequeuing)

    def seal(self, uint64_t now_ms):
        log_ranges(&self.log, self.dequeuing)
        return log_seal(&self.log, now_ms)

    def sealed(self, uint64_t index):
        cdef Channel channel
        cdef list channels = self.touched_channels
        if index == 0 and (self.log.count or PyList_GET_SIZE(self.dequeuing)):
            return
        self.touched_channels = []
        if index:
            self.sealed_index = index
        self.prompt = False
        for channel in channels:
            channel.is_touched = False
            confirms_sealed(channel, self.sealed_index)
        if PyList_GET_SIZE(self.unsealed_queues):
            seal_queues(self)
        if PyList_GET_SIZE(self.unsealed_streams):
            seal_streams(self)
        self.batch += 1

    def outlets_received(self, uint64_t batch):
        commit_outlets(self, batch)

    def received(self, uint64_t index):
        if index > self.received_index:
            self.received_index = index
        give_receipts(self)

    def committed(self, uint64_t index):
        commit_all(self, index)
