# A queue: messages in order of priority and sequence, and the consumers that read them.
#
# Each message that leaves for good goes through `gone`, which logs it and drops the reference.

@cython.final
cdef class Queue:
    cdef Engine engine
    cdef public object owner
    cdef Trace gathered_by  # None if it is not traced
    cdef uint64_t threshold  # that of the trace; else 0
    cdef public bytes label
    cdef list members  # consumers by priority and age; None if there are none
    cdef LastValues last_values  # None unless the queue keeps one message per key
    cdef StreamEnd stream  # None unless it is a stream
    cdef list paged_levels  # one for each priority that has pages; None if there are none
    cdef public uint64_t queue_id
    cdef public uint64_t next_sequence
    cdef readonly uint64_t published
    cdef readonly uint64_t delivered
    cdef readonly uint64_t redelivered
    cdef readonly uint64_t acked
    cdef readonly uint64_t dropped
    cdef readonly uint64_t unacked_count
    cdef Ready ready
    cdef Turn* rotation
    cdef uint64_t gone_first  # a range of dequeued sequences that the log batch has not written yet
    cdef uint32_t gone_count
    cdef uint64_t unseen_index  # the entry that records that a message left unseen; UNSEALED if it is this batch's
    cdef size_t awaited_count  # messages that have a place here, and enter once they are committed
    cdef uint64_t awaited_bytes
    cdef uint64_t willing_in  # the last round in which it would accept the message
    cdef int64_t armed_for_ms
    cdef uint64_t weighed_bytes  # its part of Engine.ready_bytes
    cdef int64_t ttl_ms
    cdef int64_t length_max
    cdef int64_t bytes_max
    cdef int64_t delivery_limit
    cdef int overflow
    cdef int rank  # which of the engine's lists it is in
    cdef bint dead_letters
    cdef bint counts_deliveries
    cdef bint rewrites  # it did so once, or a consumer has labels: deliveries are inspected
    cdef bint single_active
    cdef bint is_asked  # it has a limit and rejects messages, or it is an outlet, a stream, or local
    cdef bint may_refuse  # it has a limit and rejects messages
    cdef readonly bint local  # while several brokers keep the log, it has no record of the messages that enter
    cdef bint is_outlet  # its messages are confirmed when they have come out at the other end
    cdef bint may_drop  # it has a limit, and drops from its head
    cdef bint is_active  # in the engine's list of queues to run
    cdef bint withdrawable  # its messages stay in memory
    cdef bint mirror  # its messages come from the root, under the root's delivery tags
    cdef bint is_apart  # a mirror or a stream: settlements have another meaning
    cdef public bint logged
    cdef bint synced  # its messages are confirmed when they are on the disks of enough brokers
    cdef readonly bint deleted

    def __init__(self, Engine engine not None, owner, uint64_t queue_id, bint logged):
        self.engine = engine
        self.owner = owner
        self.label = NO_BYTES
        self.queue_id = queue_id
        self.logged = logged
        self.next_sequence = 1
        self.armed_for_ms = NEVER
        self.ttl_ms = self.length_max = self.bytes_max = self.delivery_limit = -1

    def __dealloc__(self):
        ready_free(&self.ready)
        rotation_free(&self.rotation)

    def configure(self, *, int64_t ttl_ms=-1, int64_t length_max=-1, int64_t bytes_max=-1, int overflow=C_DROP_HEAD,
                  bint dead_letters=False, int priority_max=0, int64_t delivery_limit=-1,
                  bint counts_deliveries=False, bytes last_value_key=None, bint single_active=False,
                  bint withdrawable=False, bint synced=False, bint local=False, bint mirror=False, bint outlet=False,
                  bint stream=False, int64_t chunk_bytes=C_CHUNK_BYTES, int64_t chunk_age_ms=C_CHUNK_AGE_MS):
        cdef bint limited = length_max >= 0 or bytes_max >= 0
        if queue_becomes_stream(self, stream, chunk_bytes, chunk_age_ms):
            return
        self.ttl_ms = ttl_ms
        self.length_max, self.bytes_max = length_max, bytes_max
        self.overflow = overflow
        self.may_refuse = limited and overflow != C_DROP_HEAD
        self.local = local
        self.is_asked = outlet or local or self.may_refuse
        self.is_outlet = outlet
        self.may_drop = limited and overflow == C_DROP_HEAD
        self.dead_letters, self.synced = dead_letters, synced
        self.delivery_limit = delivery_limit
        self.counts_deliveries = counts_deliveries
        self.rewrites = self.rewrites or counts_deliveries
        if self.next_sequence == 1:
            if not 0 <= priority_max <= 255:
                raise ValueError(f"priority_max is {priority_max}")
            self.ready.priority_max = priority_max
            self.last_values = None if last_value_key is None else new_last_values(last_value_key)
            if self.members is None:
                self.mirror = self.is_apart = mirror
            self.withdrawable = withdrawable or self.mirror
        if self.members is None:
            self.single_active = single_active
        if self.ready.count:
            queue_activate(self)

    @property
    def trace(self):
        return self.gathered_by

    @trace.setter
    def trace(self, Trace trace):
        self.gathered_by = trace
        self.threshold = 0 if trace is None else trace.threshold

    @property
    def open_chunk(self):
        return None if self.stream is None else self.stream.chunk

    @property
    def committed_end(self):
        return 0 if self.stream is None else self.stream.committed_end

    def reinstate_stream(self, uint64_t next_sequence, bytes open_rows not None):
        stream_reinstate(self, next_sequence, open_rows)

    @property
    def ready_count(self):
        return self.ready.count

    @property
    def ready_bytes(self):
        return self.ready.bytes

    # --- in

    cdef bint refuses(self, Message message, int64_t now_ms) except -1:
        cdef size_t count = self.awaited_count + 1
        cdef uint64_t size = self.awaited_bytes + message.body_size
        if not queue_overflows(self, count, size):
            return False
        self.hand_out(now_ms)
        if not queue_overflows(self, count, size):
            return False
        if self.threshold:
            trace_refused(self, message)
        if self.overflow == C_REJECT_PUBLISH_DEAD_LETTER and self.dead_letters:
            self.engine.dead.append((self, message, C_MAXLEN, 0))
        return True

    cdef inline int insert(self, Message message, int64_t now_ms) except -1:
        # Takes the message under the next sequence.
        cdef Entry entry
        cdef PyObject* consumer
        cdef uint64_t outdated
        self.engine.hold(message)
        self.fill(&entry, message, self.next_sequence, self.engine.term, now_ms)
        self.next_sequence += 1
        self.published += 1
        if queue_samples(self, entry.sequence):
            trace_published(self, message, entry.sequence)
        if self.ready.count == 0 and self.rotation != NULL and not queue_waits_for_log(self):
            # No message waits before it: a ready consumer gets the message at once, without a place in the queue.
            consumer = rotation_next(self.rotation)
            if consumer != NULL:
                if self.last_values is not None and not (<Consumer>consumer).no_ack:
                    # It makes no waiting message out of date; but it may come back.
                    self.last_values.arrive(self.last_values.key_of(message), entry.sequence, &outdated)
                return (<Consumer>consumer).deliver(&entry, now_ms)
        ready_push(&self.ready, &entry)
        if self.last_values is not None:
            queue_supersede(self, self.last_values.key_of(message), entry.sequence, True)
        if self.may_drop and queue_overflows(self, 0, 0):
            self.hand_out(now_ms)
            queue_drop_surplus(self)
        elif self.ready.count == 1 and self.rotation != NULL:
            self.hand_out(now_ms)
        if self.ready.count:
            queue_activate(self)
        return 0

    cdef inline void fill(self, Entry* entry, Message message, uint64_t sequence, uint64_t term,
                          int64_t now_ms) noexcept:
        Py_INCREF(message)
        entry.message = <PyObject*>message
        entry.sequence = sequence
        entry.term = term
        entry.delivery_count = 0
        entry.redelivered = message.suspect
        entry.deadline_ms = self.deadline_of(message, now_ms)

    cdef inline int64_t deadline_of(self, Message message, int64_t now_ms) noexcept:
        cdef int64_t deadline_ms = NEVER
        if self.ttl_ms >= 0:
            deadline_ms = now_ms + self.ttl_ms
        if message.expiration_ms >= 0:
            deadline_ms = min(deadline_ms, now_ms + message.expiration_ms)
        return deadline_ms

    cdef int restore(self, Message message, uint64_t sequence, uint64_t term, int64_t now_ms) except -1:
        cdef Entry entry
        if self.stream is not None:
            return stream_restore(self, message, sequence, now_ms)
        message.kept = message.kept or self.logged
        self.engine.hold(message)
        self.fill(&entry, message, sequence, term, now_ms)
        if sequence >= self.next_sequence:
            self.next_sequence = sequence + 1
            ready_push(&self.ready, &entry)
        else:
            ready_give_back(&self.ready, &entry)
        if self.last_values is not None:
            queue_supersede(self, self.last_values.key_of(message), sequence, False)
        queue_watch_time(self)
        queue_activate(self)
        return 0

    cdef uint64_t await_message(self, Message message, int64_t now_ms) except 0:
        # Gives the message a sequence, under which it is admitted later.
        if self.stream is not None:
            # It has a place, and is invisible until the log has it.
            stream_insert(self, message, now_ms)
            return self.next_sequence - 1
        self.awaited_count += 1
        self.awaited_bytes += message.body_size
        self.next_sequence += 1
        return self.next_sequence - 1

    cdef int admit(self, Message message, uint64_t sequence, uint64_t term, int64_t deadline_ms) except -1:
        cdef Entry entry
        if self.stream is not None:
            return 0
        self.awaited_count -= 1
        self.awaited_bytes -= message.body_size
        if self.deleted:
            return 0
        self.published += 1
        if queue_samples(self, sequence):
            trace_published(self, message, sequence)
        self.fill(&entry, message, sequence, term, 0)
        entry.deadline_ms = deadline_ms
        return self.come_back(&entry, True)

    def reinstate(self, Message message not None, uint64_t sequence, uint64_t term, int64_t deadline_ms,
                  uint32_t delivery_count, bint redelivered):
        cdef Entry entry
        self.fill(&entry, message, sequence, term, 0)
        entry.deadline_ms = deadline_ms
        entry.delivery_count = delivery_count
        entry.redelivered = redelivered
        message.kept = message.kept or self.logged
        self.next_sequence = max(self.next_sequence, sequence + 1)
        self.come_back(&entry, False)
        queue_watch_time(self)

    cdef int come_back(self, Entry* entry, bint log) except -1:
        self.engine.hold(<Message>entry.message)
        ready_give_back(&self.ready, entry)
        if self.last_values is not None:
            queue_supersede(self, self.last_values.key_of(<Message>entry.message), entry.sequence, log)
        queue_activate(self)
        return 0

    def reinstate_page(self, tuple index not None, owner):
        return queue_reinstate_page(self, index[0], index[1], owner)

    def suspect(self):
        queue_suspect(self)

    cdef int requeue(self, Entry* entry) except -1:
        # Puts an unacked message back, if it may come back; takes over its reference.
        self.unacked_count -= 1
        if self.deleted:
            return queue_forget(self, entry)
        entry.redelivered = True
        entry.delivery_count += 1
        if 0 <= self.delivery_limit < entry.delivery_count:
            return queue_die(self, entry, C_DELIVERY_LIMIT)
        ready_give_back(&self.ready, entry)
        if self.last_values is not None:
            queue_supersede(self, self.last_values.key_of(<Message>entry.message), entry.sequence, True)
        queue_activate(self)
        return 0

    # --- out

    cdef int run(self, int64_t now_ms) except -1:
        # The part of a deliver for one queue.
        if self.stream is not None:
            return stream_run(self, now_ms)
        self.hand_out(now_ms)
        if self.may_drop and queue_overflows(self, 0, 0):
            queue_drop_surplus(self)
        if self.ready.with_deadline:
            queue_expire_heads(self, now_ms)
        return queue_weigh(self)

    cdef int hand_out(self, int64_t now_ms) except -1:
        # A message whose deadline is this very moment may still be delivered: that is the meaning of a TTL of 0.
        cdef Entry entry
        cdef PyObject* consumer
        while self.ready.count:
            if ready_head_missing(&self.ready):
                if queue_head_deadline_ms(self) < now_ms or rotation_turn(self.rotation) != NULL:
                    queue_want_head(self)
                return 0
            if self.ready.with_deadline and ready_first(&self.ready).deadline_ms < now_ms:
                ready_pop_first(&self.ready, &entry)
                queue_die_unseen(self, &entry, C_EXPIRED)
                continue
            if queue_waits_for_log(self):
                return 0
            consumer = rotation_next(self.rotation)
            if consumer == NULL:
                return 0
            ready_pop_first(&self.ready, &entry)
            (<Consumer>consumer).deliver(&entry, now_ms)
        return 0

    def take(self, Channel channel not None, bint no_ack, int64_t now_ms):
        return queue_get(self, channel, no_ack, now_ms)

    cdef inline void count_delivery(self, Entry* entry) noexcept:
        self.engine.delivered += 1
        self.delivered += 1
        if entry.redelivered:
            self.engine.redelivered += 1
            self.redelivered += 1

    cdef inline int acknowledge(self, Entry* entry) except -1:
        self.unacked_count -= 1
        self.acked += 1
        return queue_gone(self, entry)

    cdef int reject(self, Entry* entry) except -1:
        self.unacked_count -= 1
        return queue_die(self, entry, C_REJECTED)

    def withdraw(self, uint64_t sequence):
        cdef Entry entry
        cdef Message message
        if not ready_remove(&self.ready, sequence, &entry):
            return None
        message = <Message>entry.message
        queue_gone(self, &entry)
        queue_watch_time(self)
        return message

    def purge(self):
        return queue_clear(self, True)

    def await_log(self):
        queue_left_unseen(self, True)

    def drop(self, uint64_t sequence_first, uint64_t count):
        queue_drop_range(self, sequence_first, count)
        queue_watch_time(self)

    def delete(self):
        cdef size_t count
        self.deleted = True
        count = queue_clear(self, False)
        for consumer in self.consumers():
            consumer.cancel()
        if self.stream is not None:
            self.stream.chunk = Chunk.__new__(Chunk)
        return count

    # --- time

    def expire(self, int64_t now_ms):
        queue_expire_heads(self, now_ms)

    @property
    def next_deadline_ms(self):
        return ready_next_deadline_ms(&self.ready)

    @property
    def timer_armed(self):
        return self.armed_for_ms != NEVER

    @timer_armed.setter
    def timer_armed(self, bint armed):
        self.armed_for_ms = min(ready_next_deadline_ms(&self.ready), NEVER - 1) if armed else NEVER

    @property
    def head_missing(self):
        return ready_head_missing(&self.ready) != 0 or (self.ready.count > 0 and queue_waits_for_log(self))

    def pages(self):
        return queue_list_pages(self)

    def snapshot(self):
        return queue_list_messages(self)

    # --- consumers

    def consumers(self):
        return [] if self.members is None else list(self.members)

    @property
    def consumer_count(self):
        return 0 if self.members is None else PyList_GET_SIZE(self.members)
