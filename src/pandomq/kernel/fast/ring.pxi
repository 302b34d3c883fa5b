# Entries of one queue and one priority, in order of their sequence, in a circular array.
#
# An entry that leaves from the middle becomes a hole (message is NULL); the first slot never is one.

cdef struct Entry:
    PyObject* message  # owned
    uint64_t sequence
    uint64_t term
    int64_t deadline_ms
    uint32_t delivery_count
    uint8_t level  # the ring it belongs to
    bint redelivered


cdef struct Ring:
    Entry* slots
    size_t mask  # capacity is a power of two; mask + 1 if there are slots
    size_t head
    size_t used  # slots from head on, holes included
    size_t holes
    size_t expected  # initial slots, by what was needed before
    uint64_t held_bytes  # headers and bodies
    PyObject* level  # for a head: the PagedLevel after it, borrowed from the queue; NULL without pages


cdef enum:
    RING_CAPACITY_MIN = 4
    RING_CAPACITY_KEPT = 16  # an empty ring keeps at most this many slots
    RING_CAPACITY_EXPECTED = 4096  # and begins with at most this many when it fills again
    RING_HOLES_MIN = 32  # fewer are not worth a move
    FETCH_MESSAGE_AHEAD = 12
    FETCH_BODY_AHEAD = 6  # by then the message itself is in the cache, and the address of its body is known


cdef inline Entry* ring_at(Ring* ring, size_t position) noexcept nogil:
    return &ring.slots[(ring.head + position) & ring.mask]


cdef inline size_t ring_capacity(Ring* ring) noexcept nogil:
    return ring.mask + 1 if ring.slots != NULL else 0


cdef int ring_resize(Ring* ring, size_t capacity) except -1:
    # Moves the slots, without the holes, to an array of this size, a power of two.
    cdef Entry* slots = <Entry*>malloc(capacity * sizeof(Entry))
    cdef Entry* entry
    cdef size_t at
    cdef size_t kept = 0
    if slots == NULL:
        raise MemoryError
    for at in range(ring.used):
        entry = ring_at(ring, at)
        if entry.message != NULL:
            slots[kept] = entry[0]
            kept += 1
    free(ring.slots)
    ring.slots = slots
    ring.mask = capacity - 1
    ring.head = ring.holes = 0
    ring.used = kept
    return 0


cdef inline int ring_reserve(Ring* ring, size_t more) except -1:
    cdef size_t capacity = ring_capacity(ring)
    if ring.used + more > capacity:
        if capacity == 0:
            capacity = max(ring.expected, <size_t>RING_CAPACITY_MIN)
        while capacity < ring.used + more:
            capacity *= 2
        ring_resize(ring, capacity)
    return 0


cdef inline Entry* ring_append(Ring* ring) except NULL:
    # The slot for a new last entry, for the caller to fill.
    if ring.slots == NULL or ring.used > ring.mask:
        ring_reserve(ring, 1)
    ring.used += 1
    return ring_at(ring, ring.used - 1)


cdef inline void ring_trim(Ring* ring) noexcept:
    # Restores the invariants after an entry left.
    while ring.used and ring_at(ring, 0).message == NULL:
        ring.head += 1
        ring.used -= 1
        ring.holes -= 1
    if ring.used == 0:
        ring.head = 0
        if ring.mask >= RING_CAPACITY_KEPT:
            # Half of it is a guess that is wrong by one growth at most, and forgets a peak after a few rounds.
            ring.expected = min((ring.mask + 1) / 2, <size_t>RING_CAPACITY_EXPECTED)
            free(ring.slots)
            ring.slots = NULL
            ring.mask = 0


cdef inline void ring_fetch_ahead(Ring* ring) noexcept:
    # Waiting messages are anywhere in memory: later ones are prefetched while this one is processed.
    cdef PyObject* message
    if ring.used > FETCH_MESSAGE_AHEAD:
        message = ring_at(ring, FETCH_MESSAGE_AHEAD).message
        if message != NULL:
            fetch_ahead(message)
        message = ring_at(ring, FETCH_BODY_AHEAD).message
        if message != NULL:
            fetch_ahead(<PyObject*>(<Message>message).body)


cdef inline void ring_pop_first(Ring* ring, Entry* entry) noexcept:
    ring_fetch_ahead(ring)
    entry[0] = ring_at(ring, 0)[0]
    ring.held_bytes -= (<Message>entry.message).held_bytes
    ring.head += 1
    ring.used -= 1
    if ring.holes or ring.used == 0:
        ring_trim(ring)


cdef size_t ring_find(Ring* ring, uint64_t sequence) noexcept nogil:
    # The first position whose sequence is not lower.
    cdef size_t low = 0
    cdef size_t high = ring.used
    cdef size_t middle
    while low < high:
        middle = (low + high) >> 1
        if ring_at(ring, middle).sequence < sequence:
            low = middle + 1
        else:
            high = middle
    return low


cdef int ring_remove(Ring* ring, uint64_t sequence, Entry* entry) except -1:
    # Returns 1 if there was such an entry; it is moved out.
    cdef size_t position = ring_find(ring, sequence)
    cdef Entry* slot
    if position == ring.used:
        return 0
    slot = ring_at(ring, position)
    if slot.sequence != sequence or slot.message == NULL:
        return 0
    entry[0] = slot[0]
    ring_make_hole(ring, slot)
    ring_close_holes(ring)
    return 1


cdef inline void ring_make_hole(Ring* ring, Entry* slot) noexcept:
    # The caller has moved out the entry, and closes the holes when it has made all.
    ring.held_bytes -= (<Message>slot.message).held_bytes
    slot.message = NULL
    ring.holes += 1


cdef int ring_close_holes(Ring* ring) except -1:
    ring_trim(ring)
    if ring.holes >= RING_HOLES_MIN and ring.holes * 2 > ring.used:
        ring_resize(ring, ring_capacity(ring))
    return 0


cdef int ring_merge(Ring* ring, const Entry* entries, size_t count) except -1:
    # Puts entries, sorted by sequence, into their places; cheap if those are near the front.
    cdef size_t front, taken = 0, merged = 0
    cdef Entry* slot
    ring_reserve(ring, count)
    front = ring_find(ring, entries[count - 1].sequence)
    # The front part is read behind where it is written: both run from the new head on, the reader `count` ahead.
    ring.head = (ring.head - count) & ring.mask
    ring.used += count
    for merged in range(count):
        ring.held_bytes += (<Message>entries[merged].message).held_bytes
    merged = 0
    while merged < count:
        slot = ring_at(ring, taken + merged)
        if taken < front and ring_at(ring, taken + count).sequence < entries[merged].sequence:
            slot[0] = ring_at(ring, taken + count)[0]
            taken += 1
        else:
            slot[0] = entries[merged]
            merged += 1
    return 0


cdef void ring_clear(Ring* ring) noexcept:
    # The entries are gone already.
    free(ring.slots)
    ring.slots = NULL
    ring.mask = ring.head = ring.used = ring.holes = 0
    ring.held_bytes = 0


cdef void ring_free(Ring* ring) noexcept:
    # Drops all references.
    cdef size_t at
    for at in range(ring.used):
        Py_XDECREF(ring_at(ring, at).message)
    ring_clear(ring)


cdef int ring_cut(Ring* ring, size_t start, size_t end, size_t count, uint64_t held_bytes) except -1:
    # The slots of this range, at one of the ends, are free; the `count` entries they held were moved out.
    cdef size_t capacity = ring_capacity(ring)
    ring.held_bytes -= held_bytes
    ring.holes -= end - start - count
    ring.used -= end - start
    if start == 0:
        ring.head += end
    ring_trim(ring)
    # Many entries left at once, and need not come again.
    while capacity > RING_CAPACITY_KEPT and ring.used * 4 < capacity:
        capacity /= 2
    if ring.slots != NULL and capacity < ring_capacity(ring):
        ring_resize(ring, capacity)
    return 0


cdef int ring_move(Ring* ring, size_t start, size_t end, Ring* target) except -1:
    # Moves the entries of this range, at one of the ends, into another ring.
    cdef Entry* moved
    cdef Entry* entry
    cdef uint64_t held_bytes = 0
    cdef size_t count = 0
    cdef size_t at
    if start == end:
        return 0
    moved = <Entry*>malloc((end - start) * sizeof(Entry))
    if moved == NULL:
        raise MemoryError
    try:
        for at in range(start, end):
            entry = ring_at(ring, at)
            if entry.message != NULL:
                moved[count] = entry[0]
                held_bytes += (<Message>entry.message).held_bytes
                count += 1
        if count:
            ring_merge(target, moved, count)
        ring_cut(ring, start, end, count, held_bytes)
    finally:
        free(moved)
    return 0


cdef void ring_suspect(Ring* ring) noexcept:
    # They may have been delivered before.
    cdef size_t at
    for at in range(ring.used):
        ring_at(ring, at).redelivered = True


cdef int ring_list(Ring* ring, list rows) except -1:
    # Adds its entries, in the form of Queue.snapshot.
    cdef Entry* entry
    cdef size_t at
    for at in range(ring.used):
        entry = ring_at(ring, at)
        if entry.message != NULL:
            rows.append((entry.sequence, entry.term, entry.deadline_ms, entry.delivery_count, entry.redelivered != 0,
                         <Message>entry.message))
    return 0
