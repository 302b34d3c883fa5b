# A channel: publish numbers, consumers, and the window of unacked deliveries.

@cython.final
cdef class Channel:
    cdef public object owner
    cdef readonly Session session
    cdef list subscriptions  # consumers by age; None if there are none
    cdef Window window
    cdef uint64_t last_tag
    cdef Confirms confirms
    cdef Kept* kept  # NULL for most
    cdef Mirrors* mirrors  # NULL for most
    cdef Session mirrored  # the uplink for which the mirrors hold; here, where the garbage collector sees it
    cdef dict mirror_consumers  # by tag; None for most
    cdef object traced  # publishes that wait for their confirms, if those are traced; None for most
    cdef Chain resting  # consumers that wait for the channel's credit, or for its release
    cdef public uint64_t producer
    cdef public uint64_t repeats_through
    cdef uint64_t numbered_in  # the last batch in which it was in Engine.numbered
    cdef readonly uint32_t prefetch_max
    cdef uint32_t credit_used  # unacked deliveries to consumers; what basic.get took does not count
    cdef readonly uint16_t number
    cdef public int mode
    cdef public bint open
    cdef bint is_held
    cdef bint is_waking  # in the engine's list of channels to wake
    cdef bint is_touched  # in the engine's list of channels with something to seal

    def __init__(self, Session session not None, uint16_t number, owner):
        self.owner = owner
        self.session = session
        self.number = number
        self.open = True
        session.channels[number] = self

    def __dealloc__(self):
        window_free(&self.window)
        confirms_free(&self.confirms)
        kept_free(self.kept)
        mirrors_free(self.mirrors)

    @property
    def unacked_count(self):
        return self.window.used - self.window.holes

    @property
    def published_count(self):
        return self.confirms.published + (self.kept.published if self.kept != NULL else 0)

    @property
    def unconfirmed_count(self):
        cdef uint64_t count = self.confirms.published - self.confirms.settled - early_ahead(self.confirms.early)
        return count if self.kept == NULL else count + self.kept.used - self.kept.confirmed

    def consumers(self):
        return [] if self.subscriptions is None else list(self.subscriptions)

    cdef int add_subscription(self, Consumer consumer) except -1:
        if self.subscriptions is None:
            self.subscriptions = []
        self.subscriptions.append(consumer)
        if consumer.queue.mirror:
            if self.mirror_consumers is None:
                self.mirror_consumers = {}
            self.mirror_consumers[consumer.tag] = consumer
        return 0

    cdef int remove_subscription(self, Consumer consumer) except -1:
        self.subscriptions.remove(consumer)
        if not self.subscriptions:
            self.subscriptions = None
        if self.mirror_consumers is not None and self.mirror_consumers.get(consumer.tag) is consumer:
            del self.mirror_consumers[consumer.tag]
        return 0

    # --- publishes

    cdef inline bint count_publish(self, Message message) except -1:
        # In CONFIRM mode. True if it is one of the publishes that were sent before.
        self.confirms.published += 1
        if not self.is_touched:
            self.touch()
        if self.producer == 0:
            return False
        message.producer = self.producer
        message.number = self.confirms.published
        return message.number <= self.repeats_through

    def set_published(self, uint64_t count):
        if self.confirms.settled != self.confirms.published:
            raise ValueError("there are publishes that were not confirmed")
        self.confirms.published = self.confirms.planned = self.confirms.settled = count

    cdef int depend_on_batch(self, uint64_t number) except -1:
        # Publishes from this number on wait for the batch's entry.
        if self.confirms.depends_from == 0:
            self.confirms.depends_from = number
            if not self.is_touched:
                self.touch()
        return 0

    cdef int publish_logged(self) except -1:
        # The last counted publish is in the batch's log entry.
        if self.producer and self.numbered_in != self.session.engine.batch:
            self.numbered_in = self.session.engine.batch
            self.session.engine.numbered.append(self)
        return self.publish_waits()

    cdef int publish_waits(self) except -1:
        # The last counted publish is confirmed after the batch's entry.
        return self.depend_on_batch(self.confirms.published or 1)

    cdef int bar(self) except -1:
        # An ack, or a reply that waits: later publishes are confirmed after this batch is committed.
        if self.session.engine.replicated:
            early_bar(early_of(self), self.confirms.published)
        return self.depend_on_batch(self.confirms.published + 1)

    cdef int touch(self) except -1:
        self.is_touched = True
        self.session.engine.touched_channels.append(self)
        return 0

    @property
    def kept_count(self):
        return self.kept.used if self.kept != NULL else 0

    @property
    def kept_bytes(self):
        return self.kept.bytes if self.kept != NULL else 0

    @property
    def first_kept(self):
        return kept_first(self.kept) if self.kept != NULL else 1

    def come_back(self, Message message not None):
        kept_come_back(self, message)

    def resend(self):
        relay_resend(self)

    @property
    def unproven_count(self):
        return self.mirrors.unproven.used if self.mirrors != NULL else 0

    @property
    def settled_number(self):
        return self.mirrors.unproven.last if self.mirrors != NULL else 0

    def prove(self, uint64_t number):
        if self.mirrors != NULL:
            unproven_prove(&self.mirrors.unproven, number)

    def settle_again(self):
        mirrors_settle_again(self)

    # --- deliveries

    cdef inline bint is_shut(self) noexcept:
        # Nothing is delivered on the channel.
        return self.is_held or not self.open

    cdef inline int keep_unacked(self, uint64_t tag, Queue queue, Entry* entry, PyObject* consumer,
                                 int64_t now_ms) except -1:
        # Takes over the entry's reference to its message.
        cdef Unacked* unacked = window_append(&self.window)
        queue.unacked_count += 1
        Py_INCREF(queue)
        if consumer != NULL:
            Py_INCREF(<object>consumer)
        unacked.tag = tag
        unacked.queue = <PyObject*>queue
        unacked.consumer = consumer
        unacked.delivered_ms = now_ms
        unacked.entry = entry[0]
        return 0

    @property
    def oldest_delivery_ms(self):
        return window_at(&self.window, 0).delivered_ms if self.window.used else NEVER

    def outstanding(self, uint64_t tag, bint multiple):
        cdef Window* window = &self.window
        cdef size_t last, at
        if multiple and tag == 0:
            last = window.used
        else:
            at = window_find(window, tag)
            if not window_holds(window, at, tag):
                return []
            if not multiple:
                return [tag]
            last = at + 1
        return [window_at(window, at).tag for at in range(last) if window_at(window, at).queue != NULL]

    def unacked(self):
        cdef list rows = []
        cdef Unacked* unacked
        cdef Entry* entry
        cdef size_t at
        for at in range(self.window.used):
            unacked = window_at(&self.window, at)
            if unacked.queue != NULL:
                entry = &unacked.entry
                rows.append((<Queue>unacked.queue, entry.sequence, entry.term, entry.deadline_ms,
                             entry.delivery_count, entry.redelivered != 0, <Message>entry.message))
        return rows

    def place_of(self, uint64_t tag):
        cdef size_t position = window_find(&self.window, tag)
        if not window_holds(&self.window, position, tag):
            return 0, 0
        return window_at(&self.window, position).entry.sequence, window_at(&self.window, position).entry.term

    cdef int settle(self, int method_id, uint64_t tag, bint multiple, bint requeue) except -1:
        # Returns 0 and does nothing if the tag is unknown.
        cdef Window* window = &self.window
        cdef size_t position
        if multiple:
            if tag:
                position = window_find(window, tag)
                if not window_holds(window, position, tag):
                    return 0
            else:
                tag = self.last_tag
            while window.used and window_at(window, 0).tag <= tag:
                self.settle_at(0, method_id, requeue)
            return 1
        position = window_find(window, tag)
        if not window_holds(window, position, tag):
            return 0
        self.settle_at(position, method_id, requeue)
        window_compact(window)
        return 1

    cdef inline int settle_at(self, size_t position, int method_id, bint requeue) except -1:
        cdef Unacked unacked = window_at(&self.window, position)[0]
        cdef Queue queue = <Queue>unacked.queue
        cdef bint logs
        if queue_samples(queue, unacked.entry.sequence):
            trace_settled(&unacked, method_id, requeue)
        window_release(&self.window, position)
        Py_DECREF(queue)
        if unacked.consumer != NULL:
            (<Consumer>unacked.consumer).settled()
            Py_DECREF(<object>unacked.consumer)
        if queue.is_apart:
            if queue.stream is not None:
                return settle_read(self, queue, &unacked.entry, method_id)
            return settle_mirrored(self, queue, &unacked.entry, method_id, requeue)
        logs = not requeue and queue.logged and (<Message>unacked.entry.message).kept
        if method_id == C_ACK:
            self.session.engine.acked += 1
            queue.acknowledge(&unacked.entry)
        elif requeue:
            queue.requeue(&unacked.entry)
        else:
            queue.reject(&unacked.entry)
        return self.bar() if logs else 0

    def settle_place(self, Queue queue not None, uint64_t sequence, uint64_t term, int method_id):
        cdef int result
        if queue.stream is not None or queue.deleted:
            return C_ABSENT
        result = queue_settle_ready(queue, sequence, term, method_id)
        if result == C_SETTLED and queue.logged:
            self.bar()
        return result

    def settle_elsewhere(self, Channel other not None, uint64_t tag, int method_id):
        cdef Engine engine = self.session.engine
        cdef Queue nowhere = engine_nowhere(engine)
        cdef size_t position = window_find(&other.window, tag)
        cdef Unacked unacked
        cdef Unacked* slot
        cdef Queue queue
        if not window_holds(&other.window, position, tag):
            return False
        slot = window_at(&other.window, position)
        unacked = slot[0]
        queue = <Queue>unacked.queue
        # Takes over the slot's references; the slot gets others.
        Py_DECREF(queue)
        Py_INCREF(nowhere)
        Py_INCREF(<object>unacked.entry.message)
        slot.queue = <PyObject*>nowhere
        nowhere.unacked_count += 1
        engine.hold(<Message>unacked.entry.message)
        if method_id == C_ACK:
            engine.acked += 1
            queue.acknowledge(&unacked.entry)
        else:
            queue.reject(&unacked.entry)
        if queue.logged:
            self.bar()
        return True

    def recover(self, int64_t now_ms):
        while self.window.used:
            self.settle_at(0, C_NACK, True)

    def give_back(self, Queue queue not None):
        return mirrors_give_back(self, queue)

    def forget(self, Queue queue not None):
        cdef size_t at = 0
        while at < self.window.used:
            if window_at(&self.window, at).queue != <PyObject*>queue:
                at += 1
            else:
                self.forget_at(at)
                # Slots behind the first one move up.
                at += at > 0
        window_compact(&self.window)

    def forget_tag(self, uint64_t tag):
        cdef size_t position = window_find(&self.window, tag)
        if not window_holds(&self.window, position, tag):
            return False
        self.forget_at(position)
        window_compact(&self.window)
        return True

    cdef int forget_at(self, size_t position) except -1:
        cdef Unacked unacked = window_at(&self.window, position)[0]
        cdef Queue queue = <Queue>unacked.queue
        window_release(&self.window, position)
        Py_DECREF(queue)
        if unacked.consumer != NULL:
            (<Consumer>unacked.consumer).settled()
            Py_DECREF(<object>unacked.consumer)
        if queue.stream is not None:
            return settle_read(self, queue, &unacked.entry, C_NACK)
        queue.unacked_count -= 1
        return queue_forget(queue, &unacked.entry)

    # --- credit

    def set_prefetch(self, uint32_t prefetch_max):
        self.prefetch_max = prefetch_max
        self.wake_later()

    def owe(self, Consumer consumer, int64_t count):
        self.credit_used += <uint32_t>count
        if consumer is not None:
            consumer.unacked_count += <uint32_t>count
            if count < 0:
                consumer.wake_if_idle()
        if count < 0:
            self.wake_later()

    def hold(self):
        self.is_held = True
        self.bar()

    def release(self):
        self.is_held = False
        self.wake_later()

    def hold_confirms(self, uint64_t number):
        self.confirms.held_from = number
        confirms_committed(self, self.session.engine.commit_index)

    cdef void wake_later(self) noexcept:
        if self.resting.first != NULL and not self.is_waking:
            self.is_waking = True
            self.session.engine.waking_channels.append(self)

    cdef bint wake(self) noexcept:
        # Wakes as many consumers as there is credit for. True if more should wake in case these do not use it up.
        cdef int64_t free_credit = <int64_t>self.prefetch_max - self.credit_used
        cdef bint woken = False
        cdef Consumer consumer
        if self.is_shut():
            return False
        while (self.prefetch_max == 0 or free_credit > 0) and self.resting.first != NULL:
            consumer = <Consumer>self.resting.first
            consumer.wake()
            woken = True
            if consumer.queue.ready.count:
                free_credit -= 1
        return woken and self.resting.first != NULL

    # --- end

    def close(self, int64_t now_ms):
        self.open = False
        for consumer in self.consumers():
            consumer.cancel()
        self.recover(now_ms)
        kept_clear(self)
        self.traced = None
        if self.mirrors != NULL:
            unproven_clear(&self.mirrors.unproven, 0)
        if self.session.channels.get(self.number) is self:
            del self.session.channels[self.number]
