# Freed messages, kept to be used again together with the memory of their bodies: publishes replace deliveries all the
# time, and neither needs an allocator.
#
# They are kept in slabs of 64, neighbours in memory, and are used again in the order of their addresses, whatever the
# order in which they were freed: otherwise a broker whose queues were once read in random order would be slower ever
# after, since each message would have to be fetched from elsewhere. A slab is used again when half of it is spare, so
# at most half of the memory is wasted. A spare message is blank, and nothing else refers to it.

cdef extern from *:
    """
    static inline void refill_bytes(PyObject *object, const octet *data, size_t size) {
        PyBytesObject *bytes = (PyBytesObject *)object;
        memcpy(bytes->ob_sval, data, size);
        bytes->ob_sval[size] = 0;
        Py_SET_SIZE(bytes, (Py_ssize_t)size);
        _Py_COMP_DIAG_PUSH
        _Py_COMP_DIAG_IGNORE_DEPR_DECLS
        bytes->ob_shash = -1;
        _Py_COMP_DIAG_POP
    }
    static inline int lowest_bit(uint64_t v) { return __builtin_ctzll(v); }
    static inline int count_bits(uint64_t v) { return __builtin_popcountll(v); }
    """
    void refill_bytes(PyObject* bytes, const octet* data, size_t size)  # nothing else may refer to it
    int lowest_bit(uint64_t v) nogil  # of a number that is not 0
    int count_bits(uint64_t v) nogil


cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* object)


cdef enum:
    SLAB_MESSAGES = 64
    SLABS_IDLE_MAX = 512  # slabs with only spare messages beyond this number are freed
    ROOM_STEP = 32
    ROOM_MAX = 511  # larger bodies are not kept


cdef struct Slab:
    uint64_t spare  # a bit for each place whose message is spare or missing
    Slab* newer  # in the list of those that may be used
    Slab* older
    bint in_line
    PyObject* messages[SLAB_MESSAGES]  # owned if spare; NULL if missing


cdef Slab* slab_newest = NULL  # the list; slabs that were used last are likely to be in the processor's cache
cdef Slab* slab_in_use = NULL
cdef uint64_t slab_places = 0  # places in that slab that were spare when it was taken and are not used yet
cdef size_t slabs_idle = 0  # slabs in the list with only spare messages


cdef inline Message blank_message():
    # As new but for the traits; there may be room for a body.
    global slab_places
    cdef Message message
    cdef int place
    if slab_places == 0:
        slab_take()
    place = lowest_bit(slab_places)
    slab_places &= slab_places - 1
    if slab_in_use.messages[place] == NULL:
        message = Message.__new__(Message)
        message.slab = slab_in_use
        message.slab_place = <uint8_t>place
        slab_in_use.messages[place] = <PyObject*>message
    else:
        message = <Message>slab_in_use.messages[place]
        Py_DECREF(message)
    return message


cdef inline void message_drop(PyObject* dropped) noexcept:
    # Takes over the caller's reference.
    cdef Message message
    if Py_REFCNT(dropped) != 1 or (<Message>dropped).slab == NULL:
        Py_DECREF(<object>dropped)
        return
    message = <Message>dropped
    message.routing = message.header = message.key = message.key_name = None
    message.holders = 0
    message.producer = message.number = 0
    message.traced_us = 0
    message.suspect = False
    if message.body_room == 0 or Py_REFCNT(<PyObject*>message.body) != 1:
        message.body = None
        message.body_room = 0
    slab_give_back(message.slab, message.slab_place)


cdef int slab_take() except -1:
    global slab_in_use, slab_places, slab_newest, slabs_idle
    cdef Slab* before = slab_in_use
    cdef Slab* slab = slab_newest
    slab_in_use = NULL
    if before != NULL and count_bits(before.spare) >= SLAB_MESSAGES / 2:
        slab_line_up(before)
        slab = before
    if slab != NULL:
        slab_leave_line(slab)
    else:
        slab = <Slab*>calloc(1, sizeof(Slab))
        if slab == NULL:
            raise MemoryError
        slab.spare = ~<uint64_t>0
    slab_in_use = slab
    slab_places = slab.spare
    slab.spare = 0
    return 0


cdef inline void slab_give_back(Slab* slab, int place) noexcept:
    slab.spare |= <uint64_t>1 << place
    if slab == slab_in_use:
        return
    if not slab.in_line:
        if count_bits(slab.spare) >= SLAB_MESSAGES / 2:
            slab_line_up(slab)
    elif slab.spare == ~<uint64_t>0:
        slab_idles(slab)


cdef void slab_line_up(Slab* slab) noexcept:
    global slab_newest, slabs_idle
    slab.in_line = True
    slab.newer = NULL
    slab.older = slab_newest
    if slab_newest != NULL:
        slab_newest.newer = slab
    slab_newest = slab
    slabs_idle += slab.spare == ~<uint64_t>0


cdef void slab_leave_line(Slab* slab) noexcept:
    global slab_newest, slabs_idle
    slab.in_line = False
    if slab.newer != NULL:
        slab.newer.older = slab.older
    else:
        slab_newest = slab.older
    if slab.older != NULL:
        slab.older.newer = slab.newer
    slabs_idle -= slab.spare == ~<uint64_t>0


cdef void slab_idles(Slab* slab) noexcept:
    # The last of its messages came back.
    global slabs_idle
    cdef int place
    slabs_idle += 1
    if slabs_idle <= SLABS_IDLE_MAX:
        return
    slab_leave_line(slab)
    for place in range(SLAB_MESSAGES):
        if slab.messages[place] != NULL:
            (<Message>slab.messages[place]).slab = NULL
            Py_DECREF(<Message>slab.messages[place])
    free(slab)


cdef inline int message_fill_body(Message message, const octet* body, size_t size) except -1:
    cdef size_t room = message.body_room
    message.body_size = size
    if size == 0:
        message.body = NO_BYTES
        message.body_room = 0
        return 0
    # A body does not take more than twice its size.
    if size > room or room > 2 * size + ROOM_STEP:
        message.body_room = 0
        if size > ROOM_MAX:
            message.body = copied(body, size)
            return 0
        room = size | (ROOM_STEP - 1)
        message.body = PyBytes_FromStringAndSize(NULL, room)
        message.body_room = <uint16_t>room
    refill_bytes(<PyObject*>message.body, body, size)
    return 0
