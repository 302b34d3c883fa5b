# Unsettled deliveries of a channel: a circular array in order of the delivery tags.
#
# A settled delivery in the middle becomes a hole (queue is NULL); the first slot never is one. Tags mostly follow each
# other without a gap, so a tag's place is computed from the first one; otherwise it is searched for.

cdef struct Unacked:
    uint64_t tag
    PyObject* queue  # owned
    PyObject* consumer  # owned; NULL for basic.get
    int64_t delivered_ms
    Entry entry


cdef struct Window:
    Unacked* slots
    size_t mask  # capacity is a power of two; mask + 1 if there are slots
    size_t head
    size_t used  # slots from head on, holes included
    size_t holes


cdef enum:
    WINDOW_CAPACITY_MIN = 4
    WINDOW_CAPACITY_KEPT = 8  # an empty window keeps at most this many slots
    WINDOW_HOLES_MIN = 32


cdef inline Unacked* window_at(Window* window, size_t position) noexcept nogil:
    return &window.slots[(window.head + position) & window.mask]


cdef int window_resize(Window* window, size_t capacity) except -1:
    # Moves the slots, without the holes, to an array of this size, a power of two.
    cdef Unacked* slots = <Unacked*>malloc(capacity * sizeof(Unacked))
    cdef Unacked* unacked
    cdef size_t at
    cdef size_t kept = 0
    if slots == NULL:
        raise MemoryError
    for at in range(window.used):
        unacked = window_at(window, at)
        if unacked.queue != NULL:
            slots[kept] = unacked[0]
            kept += 1
    free(window.slots)
    window.slots = slots
    window.mask = capacity - 1
    window.head = window.holes = 0
    window.used = kept
    return 0


cdef inline Unacked* window_append(Window* window) except NULL:
    # The slot for a new last delivery, for the caller to fill.
    if window.slots == NULL:
        window_resize(window, WINDOW_CAPACITY_MIN)
    elif window.used > window.mask:
        # If half are holes, closing them makes room enough.
        window_resize(window, (window.mask + 1) * (1 if window.holes * 2 > window.used else 2))
    window.used += 1
    return window_at(window, window.used - 1)


cdef inline size_t window_find(Window* window, uint64_t tag) noexcept nogil:
    # The first position whose tag is not lower.
    cdef size_t low = 0
    cdef size_t high = window.used
    cdef size_t middle
    if window.used == 0 or tag <= window_at(window, 0).tag:
        return 0
    middle = tag - window_at(window, 0).tag
    if middle < window.used and window_at(window, middle).tag == tag:
        return middle
    while low < high:
        middle = (low + high) >> 1
        if window_at(window, middle).tag < tag:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint window_holds(Window* window, size_t position, uint64_t tag) noexcept nogil:
    cdef Unacked* unacked
    if position >= window.used:
        return False
    unacked = window_at(window, position)
    return unacked.tag == tag and unacked.queue != NULL


cdef inline void window_release(Window* window, size_t position) noexcept:
    # The caller has moved out what the slot owned.
    window_at(window, position).queue = NULL
    window.holes += 1
    if position == 0:
        window_trim(window)


cdef inline void window_trim(Window* window) noexcept:
    while window.used and window_at(window, 0).queue == NULL:
        window.head += 1
        window.used -= 1
        window.holes -= 1
    if window.used == 0:
        window.head = 0
        if window.mask >= WINDOW_CAPACITY_KEPT:
            free(window.slots)
            window.slots = NULL
            window.mask = 0


cdef inline int window_compact(Window* window) except -1:
    # This changes positions.
    if window.holes >= WINDOW_HOLES_MIN and window.holes * 2 > window.used:
        window_resize(window, window.mask + 1)
    return 0


cdef void window_free(Window* window) noexcept:
    cdef size_t at
    cdef Unacked* unacked
    for at in range(window.used):
        unacked = window_at(window, at)
        if unacked.queue != NULL:
            Py_DECREF(<object>unacked.queue)
            Py_XDECREF(unacked.consumer)
            Py_DECREF(<object>unacked.entry.message)
    free(window.slots)
    window.slots = NULL
    window.mask = window.head = window.used = window.holes = 0
