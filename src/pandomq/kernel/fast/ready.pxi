# The messages of a queue that wait for a consumer: one ring per priority, the highest first, and pages.
#
# Entries that come back are collected, and merged into their rings once, at the next access.

cdef struct Ready:
    size_t count
    uint64_t bytes
    size_t with_deadline
    int priority_max
    Ring single  # the only ring of a queue without priorities
    Ring* rings  # of a queue with priorities, by level; NULL before its first message
    uint64_t filled[4]  # a bit for each level that holds something
    uint64_t held_bytes  # headers and bodies of the messages in memory
    size_t paged_count  # number of messages in pages
    Entry* returned
    size_t returned_count
    size_t returned_capacity


cdef inline Ring* ready_ring(Ready* ready, int level) noexcept nogil:
    return &ready.rings[level] if ready.priority_max else &ready.single


cdef inline int ready_level(Ready* ready, Message message) noexcept:
    return message.priority if message.priority < ready.priority_max else ready.priority_max


cdef inline int ready_top(Ready* ready) noexcept nogil:
    # The highest level that is not empty; there must be one.
    cdef int word
    if ready.priority_max == 0:
        return 0
    for word in range(3, -1, -1):
        if ready.filled[word]:
            return word * 64 + highest_bit(ready.filled[word])
    return 0


cdef inline void ready_mark(Ready* ready, int level) noexcept nogil:
    ready.filled[level >> 6] |= <uint64_t>1 << (level & 63)


cdef inline void ready_unmark_empty(Ready* ready, int level, Ring* ring) noexcept nogil:
    if ring.used == 0 and ring.level == NULL:
        ready.filled[level >> 6] &= ~(<uint64_t>1 << (level & 63))


cdef int ready_make_rings(Ready* ready) except -1:
    cdef size_t levels = ready.priority_max + 1
    cdef size_t at
    ready.rings = <Ring*>malloc(levels * sizeof(Ring))
    if ready.rings == NULL:
        raise MemoryError
    for at in range(levels):
        ready.rings[at] = Ring(NULL, 0, 0, 0, 0, 0, 0, NULL)
    return 0


cdef inline void ready_count(Ready* ready, Entry* entry) noexcept:
    ready.count += 1
    ready.bytes += (<Message>entry.message).body_size
    ready.held_bytes += (<Message>entry.message).held_bytes
    ready.with_deadline += entry.deadline_ms != NEVER


cdef inline void ready_uncount(Ready* ready, Entry* entry) noexcept:
    ready.count -= 1
    ready.bytes -= (<Message>entry.message).body_size
    ready.held_bytes -= (<Message>entry.message).held_bytes
    ready.with_deadline -= entry.deadline_ms != NEVER


cdef inline int ready_push(Ready* ready, Entry* entry) except -1:
    # Adds an entry with a higher sequence than all before it. Takes the caller's reference to the message.
    cdef int level = ready_level(ready, <Message>entry.message)
    cdef Ring* ring
    if ready.priority_max and ready.rings == NULL:
        ready_make_rings(ready)
    entry.level = <uint8_t>level
    ring = ready_ring(ready, level)
    if ring.level != NULL:
        ring = &(<PagedLevel>ring.level).tail
    ring_append(ring)[0] = entry[0]
    ring.held_bytes += (<Message>entry.message).held_bytes
    ready_mark(ready, level)
    ready_count(ready, entry)
    return 0


cdef int ready_give_back(Ready* ready, Entry* entry) except -1:
    # Puts an entry back into its place by its sequence. Takes the caller's reference to the message.
    entry.level = <uint8_t>ready_level(ready, <Message>entry.message)
    if ready.returned_count == ready.returned_capacity:
        ready.returned = <Entry*>grown(ready.returned, &ready.returned_capacity, sizeof(Entry))
    ready.returned[ready.returned_count] = entry[0]
    ready.returned_count += 1
    ready_count(ready, entry)
    return 0


cdef int by_level_and_sequence(const void* left, const void* right) noexcept nogil:
    cdef const Entry* one = <const Entry*>left
    cdef const Entry* other = <const Entry*>right
    if one.level != other.level:
        return -1 if one.level < other.level else 1
    if one.sequence != other.sequence:
        return -1 if one.sequence < other.sequence else 1
    return 0


cdef int ready_merge(Ready* ready) except -1:
    cdef size_t start = 0
    cdef size_t end
    cdef int level
    cdef Ring* ring
    qsort(ready.returned, ready.returned_count, sizeof(Entry), by_level_and_sequence)
    if ready.priority_max and ready.rings == NULL:
        ready_make_rings(ready)
    while start < ready.returned_count:
        level = ready.returned[start].level
        end = start + 1
        while end < ready.returned_count and ready.returned[end].level == level:
            end += 1
        ring = ready_ring(ready, level)
        if ring.level == NULL:
            ring_merge(ring, &ready.returned[start], end - start)
        else:
            (<PagedLevel>ring.level).merge(&ready.returned[start], end - start)
        ready_mark(ready, level)
        start = end
    ready_forget_returned(ready)
    return 0


cdef void ready_forget_returned(Ready* ready) noexcept:
    free(ready.returned)
    ready.returned = NULL
    ready.returned_count = ready.returned_capacity = 0


cdef inline int ready_settle(Ready* ready) except -1:
    # Must precede every access to the rings.
    if ready.returned_count:
        ready_merge(ready)
    return 0


cdef inline bint ready_head_missing(Ready* ready) except -1:
    # The next message to deliver is in a page.
    if ready.paged_count == 0:
        return False
    ready_settle(ready)
    return ready_ring(ready, ready_top(ready)).used == 0


cdef inline Entry* ready_first(Ready* ready) except NULL:
    # The next message to deliver; there must be one, and not in a page.
    ready_settle(ready)
    return ring_at(ready_ring(ready, ready_top(ready)), 0)


cdef inline int ready_pop_first(Ready* ready, Entry* entry) except -1:
    # The caller gets the reference to the message.
    cdef int level
    ready_settle(ready)
    level = ready_top(ready)
    return ready_pop_level(ready, level, entry)


cdef inline int ready_pop_level(Ready* ready, int level, Entry* entry) except -1:
    cdef Ring* ring = ready_ring(ready, level)
    ring_pop_first(ring, entry)
    ready_uncount(ready, entry)
    if ring.level != NULL:
        (<PagedLevel>ring.level).read_ahead()
    else:
        ready_unmark_empty(ready, level, ring)
    return 0


cdef int ready_remove(Ready* ready, uint64_t sequence, Entry* entry) except -1:
    # Returns 1 if it was ready, in memory; the caller gets the reference to the message.
    cdef int level
    cdef Ring* ring
    ready_settle(ready)
    if ready.count == 0:
        return 0
    for level in range(ready.priority_max + 1):
        ring = ready_ring(ready, level)
        if (ring.used and ring_remove(ring, sequence, entry)) or (
            ring.level != NULL and (<PagedLevel>ring.level).remove(sequence, entry)
        ):
            ready_unmark_empty(ready, level, ring)
            ready_uncount(ready, entry)
            return 1
    return 0


cdef int64_t ready_next_deadline_ms(Ready* ready) except? -1:
    # The earliest deadline of the first entries of all priorities.
    cdef int64_t earliest = NEVER
    cdef int level
    cdef Ring* ring
    if ready.with_deadline == 0:
        return NEVER
    ready_settle(ready)
    for level in range(ready.priority_max + 1):
        ring = ready_ring(ready, level)
        if ring.used:
            earliest = min(earliest, ring_at(ring, 0).deadline_ms)
        elif ring.level != NULL:
            earliest = min(earliest, (<PagedLevel>ring.level).next_deadline_ms())
    return earliest


cdef void ready_free(Ready* ready) noexcept:
    # Drops all references.
    cdef int level
    cdef size_t at
    for at in range(ready.returned_count):
        Py_DECREF(<object>ready.returned[at].message)
    ready_forget_returned(ready)
    if ready.priority_max and ready.rings == NULL:
        return
    for level in range(ready.priority_max + 1):
        ring_free(ready_ring(ready, level))
    free(ready.rings)
    ready.rings = NULL
