# One subscription of a channel to a queue.

@cython.final
cdef class Consumer:
    cdef public object owner
    cdef readonly Channel channel
    cdef readonly Queue queue
    cdef readonly bytes tag
    cdef readonly uint64_t delivered
    cdef readonly int64_t priority
    cdef readonly uint32_t prefetch_max
    cdef readonly uint32_t unacked_count
    cdef readonly bint no_ack
    cdef readonly bint active
    cdef Reader reader  # None unless it reads a stream
    cdef bint registered
    cdef bint is_labelled
    cdef public bint identified
    cdef bint served  # it got a message since it was last woken
    cdef Turn* turn
    cdef Chain* chain  # the one it is in, or NULL
    cdef PyObject* before
    cdef PyObject* after

    def __init__(self, Channel channel not None, Queue queue not None, bytes tag not None, bint no_ack,
                 uint32_t prefetch_max, int64_t priority, owner):
        self.owner = owner
        self.channel = channel
        self.queue = queue
        self.tag = tag
        self.no_ack = no_ack
        self.prefetch_max = prefetch_max
        self.priority = priority
        self.registered = True
        if queue.stream is not None:
            self.reader = new_reader()
        channel.add_subscription(self)
        queue_add_consumer(queue, self)

    @property
    def labelled(self):
        return self.is_labelled

    @labelled.setter
    def labelled(self, bint labelled):
        self.is_labelled = labelled
        if labelled:
            self.queue.rewrites = True

    cdef inline bint has_obstacle(self) noexcept:
        cdef Channel channel = self.channel
        return (
            channel.is_shut()
            or channel.session.is_full()
            or (self.prefetch_max and self.unacked_count >= self.prefetch_max)
            or (channel.prefetch_max and channel.credit_used >= channel.prefetch_max)
        )

    cdef void rest(self) noexcept:
        # Moves to the chain that the end of its obstacle wakes.
        cdef Channel channel = self.channel
        cdef Session session = channel.session
        if channel.is_shut():
            chain_append(&channel.resting, self)
        elif session.is_full():
            # Consumers that got nothing come first next time: otherwise the same one could fill the session again and
            # again.
            chain_append(&session.served if self.served else &session.starved, self)
        elif not (self.prefetch_max and self.unacked_count >= self.prefetch_max):
            chain_append(&channel.resting, self)

    cdef void wake(self) noexcept:
        # Waits for its turn again, unless it already waits or must not.
        if not self.registered or not self.active or self.chain == &self.turn.ready:
            return
        if self.chain != NULL:
            chain_remove(self)
        self.served = False
        chain_append(&self.turn.ready, self)
        if self.queue.ready.count or self.reader is not None:
            queue_activate(self.queue)

    cdef inline int deliver(self, Entry* entry, int64_t now_ms) except -1:
        # Writes the delivery and takes over the entry's reference to the message.
        cdef Queue queue = self.queue
        cdef Channel channel = self.channel
        cdef Consumer alive  # while a hook runs
        self.served = True
        self.delivered += 1
        channel.last_tag += 1
        if queue_samples(queue, entry.sequence):
            trace_delivered(queue, entry, <PyObject*>self)
        queue.count_delivery(entry)
        if queue.rewrites:
            alive = self
            deliver_rewritten(self, entry)
        else:
            channel.session.write_delivery(channel.number, self.tag, channel.last_tag, entry.redelivered,
                                           <Message>entry.message, entry if self.identified else NULL)
        if self.no_ack:
            return queue_gone(queue, entry)
        self.unacked_count += 1
        channel.credit_used += 1
        return channel.keep_unacked(channel.last_tag, queue, entry, <PyObject*>self, now_ms)

    cdef inline void settled(self) noexcept:
        # One of its messages is no longer unacked.
        self.unacked_count -= 1
        self.channel.credit_used -= 1
        if self.channel.resting.first != NULL:
            self.channel.wake_later()
        self.wake_if_idle()

    cdef inline void wake_if_idle(self) noexcept:
        # It may have credit again.
        if self.chain == NULL and (self.prefetch_max == 0 or self.unacked_count < self.prefetch_max):
            self.wake()

    def cancel(self):
        if not self.registered:
            return
        self.registered = False
        if self.chain != NULL:
            chain_remove(self)
        if self.reader is not None:
            reader_leave(self.reader)
        self.channel.remove_subscription(self)
        queue_remove_consumer(self.queue, self)

    # --- of a stream

    @property
    def next_offset(self):
        return -1 if self.reader is None else self.reader.next_offset

    def seek(self, int64_t offset, filters=(), bint match_unfiltered=False):
        reader_seek(self, offset, filters, match_unfiltered)

    def read_from(self, Chunk chunk not None):
        reader_read_from(self, chunk)
