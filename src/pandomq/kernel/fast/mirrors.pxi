# Deliveries that the root made to a channel of this broker, and their settlements to the root; see plain/mirrors.py.
#
# Unsettled tags are bits. The bits before the lowest one are shifted out now and then.

cdef struct Mirrors:
    uint64_t era
    uint64_t base  # the tag of the first bit
    uint64_t low  # the lowest tag that is not settled
    uint64_t high  # the highest that was delivered
    uint64_t count  # not settled
    uint64_t* words
    size_t words_count
    uint64_t joined_tag
    uint64_t joined_count
    Unproven unproven
    size_t late_count  # the last `late_count` of those are written by place
    bint lost


cdef enum:
    MIRROR_WORDS_MIN = 4
    MIRROR_WORDS_KEPT = 64  # an empty one keeps at most this many


cdef void mirrors_free(Mirrors* mirrors) noexcept:
    if mirrors != NULL:
        free(mirrors.words)
        free(mirrors.unproven.slots)
        free(mirrors)


cdef inline Mirrors* mirrors_of(Channel channel) except NULL:
    # For the current uplink.
    if channel.mirrors == NULL or channel.mirrored is not channel.session.uplink:
        mirrors_turn_to_uplink(channel)
    return channel.mirrors


cdef int mirrors_turn_to_uplink(Channel channel) except -1:
    cdef Mirrors* mirrors = channel.mirrors
    if mirrors == NULL:
        mirrors = channel.mirrors = <Mirrors*>calloc(1, sizeof(Mirrors))
        if mirrors == NULL:
            raise MemoryError
    if channel.mirrored is channel.session.uplink:
        return 0
    channel.mirrored = channel.session.uplink
    mirrors.era += 1
    mirrors.lost = False
    mirrors.joined_count = mirrors.late_count = 0
    mirrors_empty(mirrors)
    return 0


cdef void mirrors_empty(Mirrors* mirrors) noexcept:
    free(mirrors.words)
    mirrors.words = NULL
    mirrors.words_count = 0
    mirrors.count = 0


cdef inline bint mirrors_has(Mirrors* mirrors, uint64_t tag) noexcept nogil:
    if mirrors.count == 0 or tag < mirrors.low or tag > mirrors.high:
        return False
    return mirrors.words[(tag - mirrors.base) >> 6] >> ((tag - mirrors.base) & 63) & 1


cdef int mirrors_came(Mirrors* mirrors, uint64_t tag) except -1:
    # A delivery that will have to be settled.
    cdef size_t place
    if mirrors.lost or mirrors_has(mirrors, tag):
        return 0
    if mirrors.count == 0:
        # All words are 0 then.
        if mirrors.words_count > MIRROR_WORDS_KEPT:
            mirrors_empty(mirrors)
        mirrors.low = mirrors.high = mirrors.base = tag
    elif tag < mirrors.low or tag - mirrors.low >= C_MIRROR_SPAN_MAX:
        mirrors.lost = True
        mirrors_empty(mirrors)
        return 0
    place = (tag - mirrors.base) >> 6
    if place >= mirrors.words_count:
        mirrors_make_room(mirrors, tag)
        place = (tag - mirrors.base) >> 6
    mirrors.words[place] |= <uint64_t>1 << ((tag - mirrors.base) & 63)
    mirrors.high = max(mirrors.high, tag)
    mirrors.count += 1
    return 0


cdef int mirrors_make_room(Mirrors* mirrors, uint64_t tag) except -1:
    # First the words before the lowest tag are removed; if that is not enough, the array grows.
    cdef size_t passed = min((mirrors.low - mirrors.base) >> 6, mirrors.words_count)
    cdef size_t wanted, capacity
    cdef uint64_t* words
    if passed:
        memmove(mirrors.words, mirrors.words + passed, (mirrors.words_count - passed) * sizeof(uint64_t))
        memset(mirrors.words + mirrors.words_count - passed, 0, passed * sizeof(uint64_t))
        mirrors.base += passed << 6
    wanted = ((tag - mirrors.base) >> 6) + 1
    # Half of it is free, otherwise the next one would move all of it again.
    if wanted * 2 > mirrors.words_count:
        capacity = max(mirrors.words_count, <size_t>MIRROR_WORDS_MIN)
        while capacity < wanted * 2:
            capacity *= 2
        words = <uint64_t*>realloc(mirrors.words, capacity * sizeof(uint64_t))
        if words == NULL:
            raise MemoryError
        memset(words + mirrors.words_count, 0, (capacity - mirrors.words_count) * sizeof(uint64_t))
        mirrors.words = words
        mirrors.words_count = capacity
    return 0


cdef bint mirrors_leave(Mirrors* mirrors, uint64_t tag) noexcept nogil:
    # True if it was the lowest unsettled tag.
    cdef size_t place
    cdef uint64_t left
    if not mirrors_has(mirrors, tag):
        return False
    place = (tag - mirrors.base) >> 6
    mirrors.words[place] &= ~(<uint64_t>1 << ((tag - mirrors.base) & 63))
    mirrors.count -= 1
    if tag != mirrors.low:
        return False
    if mirrors.count:
        left = mirrors.words[place]
        while left == 0:
            place += 1
            left = mirrors.words[place]
        mirrors.low = mirrors.base + (place << 6) + lowest_bit(left)
    return True


cdef int mirrors_settled(Channel channel, Queue queue, Entry* entry, int method_id, bint requeue) except -1:
    cdef Mirrors* mirrors = mirrors_of(channel)
    cdef bint lowest, late
    if not channel.open:
        return 0
    late = queue.deleted or entry.term != mirrors.era
    if not requeue and queue.queue_id and (<Message>entry.message).number and channel.mode != C_TRANSACTION:
        mirrors_keep(channel, queue, entry, method_id, late)
    if late or channel.session.uplink is None:
        return 0
    lowest = mirrors_leave(mirrors, entry.sequence)
    if method_id == C_ACK and lowest:
        mirrors.joined_tag = entry.sequence
        mirrors.joined_count += 1
        return 0
    mirrors_flush(channel)
    return mirrors_write(channel, method_id, entry.sequence, (2 if method_id == C_NACK else 1) if requeue else 0)


cdef inline int mirrors_keep(Channel channel, Queue queue, Entry* entry, int method_id, bint late) except -1:
    cdef Mirrors* mirrors = channel.mirrors
    if not late or mirrors.late_count == C_SETTLE_ROWS_MAX:
        mirrors_write_late(channel)
    unproven_add(&mirrors.unproven, queue.queue_id, <Message>entry.message, <uint8_t>method_id)
    if late and channel.session.uplink is not None:
        mirrors.late_count += 1
    return 0


cdef inline int mirrors_write_late(Channel channel) except -1:
    if channel.mirrors.late_count:
        unproven_write(&channel.mirrors.unproven, channel.session.uplink, channel.number, channel.mirrors.late_count)
        channel.mirrors.late_count = 0
    return 0


cdef int mirrors_settle_again(Channel channel) except -1:
    cdef Mirrors* mirrors
    if channel.mirrors == NULL or channel.session.uplink is None:
        return 0
    mirrors = mirrors_of(channel)
    return unproven_write(&mirrors.unproven, channel.session.uplink, channel.number, mirrors.unproven.used)


cdef inline int mirrors_flush(Channel channel) except -1:
    if channel.mirrors == NULL:
        return 0
    if channel.mirrors.joined_count:
        mirrors_write(channel, C_ACK, channel.mirrors.joined_tag, channel.mirrors.joined_count > 1)
        channel.mirrors.joined_count = 0
    return mirrors_write_late(channel)


cdef int mirrors_write(Channel channel, uint16_t method_id, uint64_t tag, uint8_t bits) except -1:
    cdef octet frame[21]
    if channel.session.uplink is None:
        return 0
    store_settlement(frame, channel.number, method_id, tag, bits)
    return channel.session.uplink.put(frame, sizeof(frame))


cdef int settle_mirrored(Channel channel, Queue queue, Entry* entry, int method_id, bint requeue) except -1:
    # A message of a mirror queue left the window; takes over its reference.
    mirrors_settled(channel, queue, entry, method_id, requeue)
    queue.unacked_count -= 1
    if method_id == C_ACK:
        channel.session.engine.acked += 1
        queue.acked += 1
    elif not requeue:
        queue.dropped += 1
    return queue_forget(queue, entry)


cdef size_t mirrors_give_back(Channel channel, Queue queue) except? 0:
    cdef Entry entry
    cdef size_t count = 0
    while queue.ready.count:
        ready_pop_first(&queue.ready, &entry)
        mirrors_settled(channel, queue, &entry, C_NACK, True)
        queue_forget(queue, &entry)
        count += 1
    queue_weigh(queue)
    return count


cdef int mirrors_took(Channel channel, Entry* entry) except -1:
    # Delivered by basic.get.
    cdef Mirrors* mirrors = mirrors_of(channel)
    entry.term = mirrors.era
    return mirrors_came(mirrors, entry.sequence)


cdef int mirror_run(Engine engine, Session session, DeliveryRun run, int64_t now_ms) except -1:
    cdef size_t at
    cdef Delivery* item
    cdef Delivery* before = NULL  # whose channel and consumer are the current ones
    cdef Channel channel = None
    cdef Consumer consumer = None
    for at in range(run.size):
        item = &run.items[at]
        if before == NULL or not same_destination(before, item):
            before = item
            channel = session.channels.get(item.channel)
            consumer = None
            if channel is not None and channel.mirror_consumers is not None:
                consumer = channel.mirror_consumers.get(run.consumer_tag(item))
        if channel is None or not channel.open:
            continue
        if consumer is None:
            mirrors_write(channel, C_NACK, item.tag, 2)
            continue
        mirrors_of(channel)
        if not consumer.no_ack:
            mirrors_came(channel.mirrors, item.tag)
        mirror_message(consumer.queue, <Message>item.message, item, channel.mirrors.era, now_ms)
    return 0


cdef inline bint same_destination(Delivery* one, Delivery* other) noexcept nogil:
    # Whether the octets of their consumer tags are equal, too. An empty tag has no place of its own.
    return (one.channel == other.channel and one.consumer_at == other.consumer_at
            and one.consumer_size == other.consumer_size)


cdef inline int mirror_message(Queue queue, Message message, Delivery* item, uint64_t era, int64_t now_ms) except -1:
    # The root enforces the message's TTL.
    cdef Entry entry
    cdef PyObject* consumer
    cdef bint follows = item.tag >= queue.next_sequence
    Py_INCREF(message)
    entry.message = <PyObject*>message
    entry.sequence = item.tag
    entry.term = era
    entry.deadline_ms = NEVER
    entry.delivery_count = 0
    entry.redelivered = item.redelivered
    queue.published += 1
    queue.engine.hold(message)
    if follows:
        queue.next_sequence = item.tag + 1
    if queue.ready.count == 0:
        consumer = rotation_next(queue.rotation)
        if consumer != NULL:
            return (<Consumer>consumer).deliver(&entry, now_ms)
    if follows:
        ready_push(&queue.ready, &entry)
    else:
        ready_give_back(&queue.ready, &entry)
    queue_activate(queue)
    return 0
