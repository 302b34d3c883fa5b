# Publishes that a channel has forwarded to the root and that the root has not confirmed; see plain/kept.py.

cdef struct Forwarded:
    PyObject* message  # owned
    uint16_t flags
    bint confirmed


cdef struct Kept:
    Forwarded* slots  # circular
    size_t mask  # capacity is a power of two; mask + 1 if there are slots
    size_t head
    size_t used
    size_t confirmed  # number of used slots that are confirmed
    uint64_t published
    uint64_t bytes
    uint64_t returned  # the number of the last one that this root has returned


cdef enum:
    KEPT_CAPACITY_MIN = 8
    KEPT_CAPACITY_EMPTY = 64  # an empty one keeps at most this many slots


cdef inline Forwarded* kept_at(Kept* kept, size_t position) noexcept nogil:
    return &kept.slots[(kept.head + position) & kept.mask]


cdef Kept* kept_of(Channel channel) except NULL:
    # Most channels never have one.
    if channel.kept == NULL:
        channel.kept = <Kept*>calloc(1, sizeof(Kept))
        if channel.kept == NULL:
            raise MemoryError
    return channel.kept


cdef int kept_grow(Kept* kept) except -1:
    cdef size_t capacity = (kept.mask + 1) * 2 if kept.slots != NULL else KEPT_CAPACITY_MIN
    cdef Forwarded* slots = <Forwarded*>malloc(capacity * sizeof(Forwarded))
    cdef size_t at
    if slots == NULL:
        raise MemoryError
    for at in range(kept.used):
        slots[at] = kept_at(kept, at)[0]
    free(kept.slots)
    kept.slots = slots
    kept.mask = capacity - 1
    kept.head = 0
    return 0


cdef inline int kept_add(Channel channel, Message message, uint16_t flags) except -1:
    cdef Kept* kept = kept_of(channel)
    if kept.slots == NULL or kept.used > kept.mask:
        kept_grow(kept)
    channel.session.engine.hold(message)
    Py_INCREF(message)
    kept_at(kept, kept.used)[0] = Forwarded(<PyObject*>message, flags, False)
    kept.used += 1
    kept.published += 1
    kept.bytes += message.held_bytes
    return 0


cdef inline uint64_t kept_first(Kept* kept) noexcept nogil:
    # The number of the first kept publish, or of the next one.
    return kept.published - kept.used + 1


cdef uint64_t kept_confirm(Channel channel, uint64_t number, bint multiple, uint64_t* last) except? 0:
    # Number of publishes that this confirms for the first time; `last` becomes the number of the last one of them.
    cdef Kept* kept = channel.kept
    cdef uint64_t first = kept_first(kept)
    cdef uint64_t count = 0
    cdef uint64_t one
    cdef Forwarded* forwarded
    for one in range(first if multiple else max(number, first), min(number, kept.published) + 1):
        forwarded = kept_at(kept, one - first)
        if not forwarded.confirmed:
            forwarded.confirmed = True
            # A return precedes the confirm: this one can no longer come back.
            forwarded.flags &= ~<uint16_t>C_MANDATORY
            count += 1
            last[0] = one
    kept.confirmed += count
    while kept.used and kept_at(kept, 0).confirmed:
        kept.confirmed -= 1
        kept_drop_first(channel)
    return count


cdef int kept_come_back(Channel channel, Message message) except -1:
    cdef Kept* kept = channel.kept
    cdef uint64_t first, one
    cdef Forwarded* forwarded
    if kept == NULL:
        return 0
    first = kept_first(kept)
    for one in range(max(first, kept.returned + 1), kept.published + 1):
        forwarded = kept_at(kept, one - first)
        # The headers differ where the root adds or removes some.
        if (
            forwarded.flags & C_MANDATORY
            and (<Message>forwarded.message).routing == message.routing
            and (<Message>forwarded.message).body == message.body
        ):
            forwarded.flags &= ~<uint16_t>C_MANDATORY
            kept.returned = one
            return 0
    return 0


cdef inline int kept_drop_first(Channel channel) except -1:
    cdef Kept* kept = channel.kept
    cdef PyObject* message = kept_at(kept, 0).message
    kept.head += 1
    kept.used -= 1
    kept.bytes -= (<Message>message).held_bytes
    channel.session.engine.let_go(<Message>message)
    message_drop(message)
    if kept.used == 0 and kept.mask >= KEPT_CAPACITY_EMPTY:
        kept_shrink(kept)
    return 0


cdef void kept_shrink(Kept* kept) noexcept:
    free(kept.slots)
    kept.slots = NULL
    kept.mask = kept.head = 0


cdef int kept_clear(Channel channel) except -1:
    if channel.kept != NULL:
        channel.kept.confirmed = 0
        while channel.kept.used:
            kept_drop_first(channel)
    return 0


cdef void kept_free(Kept* kept) noexcept:
    cdef size_t at
    if kept != NULL:
        for at in range(kept.used):
            Py_DECREF(<object>kept_at(kept, at).message)
        free(kept.slots)
        free(kept)
