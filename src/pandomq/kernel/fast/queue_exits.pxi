# How messages leave a queue for good. Each of them goes through queue_gone, which logs it, or through queue_forget, if
# the log has it anyway; both take over the entry's reference to the message.

cdef inline bint queue_samples(Queue queue, uint64_t sequence) noexcept:
    # Whether events of this message are traced.
    return queue.threshold != 0 and ((sequence * SAMPLE_SPREAD) >> 32) < queue.threshold


cdef inline int queue_gone(Queue queue, Entry* entry) except -1:
    # The message left the queue for good.
    queue_log(queue, entry)
    return queue_forget(queue, entry)


cdef inline int queue_forget(Queue queue, Entry* entry) except -1:
    if queue.last_values is not None:
        queue.last_values.leave_message(<Message>entry.message, entry.sequence)
    return queue_let_go(queue, entry)


cdef inline int queue_log(Queue queue, Entry* entry) except -1:
    if queue.logged and (<Message>entry.message).kept and not queue.deleted:
        queue.engine.log_dequeue(queue, entry.sequence)
    return 0


cdef enum:
    UNSEALED = 0xFFFFFFFFFFFFFFFF


cdef inline bint queue_waits_for_log(Queue queue) noexcept:
    # Nothing may be delivered: a message left that no consumer received, and the log may still lose that record. Then
    # the message comes back, and must not follow those that were behind it.
    return queue.unseen_index > queue.engine.commit_index


cdef inline int queue_left_unseen(Queue queue, bint kept) except -1:
    # A message leaves that was not delivered.
    if queue.logged and kept and not queue.deleted and queue.unseen_index != <uint64_t>UNSEALED:
        queue.unseen_index = <uint64_t>UNSEALED
        queue.engine.unsealed_queues.append(queue)
    return 0


cdef inline int queue_let_go(Queue queue, Entry* entry) except -1:
    queue.engine.let_go(<Message>entry.message)
    message_drop(entry.message)
    return 0


cdef int queue_die(Queue queue, Entry* entry, int reason) except -1:
    cdef bint is_letter = queue.dead_letters and not queue.deleted
    queue.dropped += 1
    if queue_samples(queue, entry.sequence):
        trace_died(queue, entry, reason, is_letter)
    if is_letter:
        queue.engine.dead.append((queue, <Message>entry.message, reason, entry.delivery_count))
    return queue_gone(queue, entry)


cdef int queue_die_unseen(Queue queue, Entry* entry, int reason) except -1:
    queue_left_unseen(queue, (<Message>entry.message).kept)
    return queue_die(queue, entry, reason)


cdef int queue_drop_surplus(Queue queue) except -1:
    # From the head: the message that would be delivered next is dropped first, even if it has the highest priority.
    cdef Entry entry
    while queue.ready.count and queue_overflows(queue, 0, 0):
        if ready_head_missing(&queue.ready):
            return queue_want_head(queue)
        ready_pop_first(&queue.ready, &entry)
        queue_die_unseen(queue, &entry, C_MAXLEN)
    return 0


cdef inline bint queue_overflows(Queue queue, size_t count, uint64_t size) noexcept:
    # Whether the ready messages, with this many more, exceed a limit.
    if queue.length_max >= 0 and queue.ready.count + count > <uint64_t>queue.length_max:
        return True
    return queue.bytes_max >= 0 and queue.ready.bytes + size > <uint64_t>queue.bytes_max


cdef int queue_expire_heads(Queue queue, int64_t now_ms) except -1:
    cdef Entry entry
    cdef Ring* ring
    cdef int level
    if queue.ready.with_deadline:
        ready_settle(&queue.ready)
        for level in range(queue.ready.priority_max, -1, -1):
            ring = ready_ring(&queue.ready, level)
            while ring.used and ring_at(ring, 0).deadline_ms <= now_ms:
                ready_pop_level(&queue.ready, level, &entry)
                queue_die_unseen(queue, &entry, C_EXPIRED)
            if ring.level != NULL and ring.used == 0:
                if (<PagedLevel>ring.level).next_deadline_ms() <= now_ms:
                    (<PagedLevel>ring.level).read_ahead()
                # Messages of lower priority wait, so that dead letters keep their order.
                if (<PagedLevel>ring.level).first_page().wanted:
                    break
    return queue_watch_time(queue)


cdef inline int queue_watch_time(Queue queue) except -1:
    # A timer for a later time than needed has no use.
    if queue.ready.with_deadline and ready_next_deadline_ms(&queue.ready) < queue.armed_for_ms:
        queue.armed_for_ms = NEVER
        queue.engine.waiting_for_time.append(queue)
    return 0
