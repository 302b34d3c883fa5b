# Settlements that the root's log may not have yet, by the places of the messages; see plain/unproven.py.

cdef struct Row:
    uint64_t queue_id
    uint64_t sequence
    uint64_t term
    uint8_t method_id


cdef struct Unproven:
    Row* slots  # circular
    size_t mask  # capacity is a power of two; mask + 1 if there are slots
    size_t head
    size_t used
    uint64_t last  # the number of the last one


cdef enum:
    UNPROVEN_CAPACITY_MIN = 16
    UNPROVEN_CAPACITY_EMPTY = 2048  # an empty one keeps at most this many slots
    ROW_SIZE = 25
    SETTLE_HEAD_SIZE = 16  # of the payload, before the rows


cdef inline Row* unproven_at(Unproven* unproven, size_t position) noexcept nogil:
    return &unproven.slots[(unproven.head + position) & unproven.mask]


cdef int unproven_grow(Unproven* unproven) except -1:
    cdef size_t capacity = (unproven.mask + 1) * 2 if unproven.slots != NULL else UNPROVEN_CAPACITY_MIN
    cdef Row* slots = <Row*>malloc(capacity * sizeof(Row))
    cdef size_t at
    if slots == NULL:
        raise MemoryError
    for at in range(unproven.used):
        slots[at] = unproven_at(unproven, at)[0]
    free(unproven.slots)
    unproven.slots = slots
    unproven.mask = capacity - 1
    unproven.head = 0
    return 0


cdef inline int unproven_add(Unproven* unproven, uint64_t queue_id, Message message, uint8_t method_id) except -1:
    if unproven.slots == NULL or unproven.used > unproven.mask:
        unproven_grow(unproven)
    unproven_at(unproven, unproven.used)[0] = Row(queue_id, message.number, message.producer, method_id)
    unproven.used += 1
    unproven.last += 1
    return 0


cdef void unproven_prove(Unproven* unproven, uint64_t number) noexcept:
    cdef uint64_t before = unproven.last - unproven.used
    cdef size_t count = min(unproven.used, number - before) if number > before else 0
    unproven.head += count
    unproven.used -= count
    if unproven.used == 0:
        unproven_clear(unproven, UNPROVEN_CAPACITY_EMPTY)


cdef void unproven_clear(Unproven* unproven, size_t capacity_kept) noexcept:
    unproven.head = unproven.used = 0
    if unproven.mask >= capacity_kept:
        free(unproven.slots)
        unproven.slots = NULL
        unproven.mask = 0


cdef int unproven_write(Unproven* unproven, Session uplink, uint16_t number, size_t count) except -1:
    # Writes the last `count` rows.
    cdef size_t at = unproven.used - count
    cdef size_t rows, size
    cdef octet* p
    cdef Row* row
    while at < unproven.used and not uplink.closed:
        rows = min(unproven.used - at, <size_t>C_SETTLE_ROWS_MAX)
        size = SETTLE_HEAD_SIZE + rows * ROW_SIZE
        p = uplink.room(size + FRAME_OVERHEAD)
        p = store32(store16(store8(p, C_METHOD), number), <uint32_t>size)
        p = store64(store16(store16(p, C_BASIC), C_SETTLE), 0)
        p = store32(p, <uint32_t>(rows * ROW_SIZE))
        for _ in range(rows):
            row = unproven_at(unproven, at)
            p = store8(store64(store64(store64(p, row.queue_id), row.sequence), row.term), row.method_id)
            at += 1
        store8(p, C_FRAME_END)
    return 0
