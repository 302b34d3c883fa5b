# One message for many queues. If a waiting consumer of a queue needs no ack, its copy is written at once, and nothing
# has to be remembered. The bytes after the delivery tag are the same in all copies except for the channel number: they
# are encoded once, and copied.

cdef enum:
    MANY_QUEUES = 4  # with fewer queues it does not pay
    PATTERN_SIZE_MAX = 16384  # in larger messages the body is most of the work
    STEP_MANY_QUEUE = 8
    STEP_MANY_TURN = 6
    STEP_MANY_CONSUMER = 4
    STEP_MANY_CHANNEL = 3
    STEP_MANY_SESSION = 2
    STEP_MANY_OUTPUT = 1


cdef struct Pattern:
    PyObject* message  # the message it was made for, while that goes to its queues; else NULL
    octet* data
    size_t size
    size_t capacity
    size_t header_at  # where the channel number is, in the header frame and in the body frame
    size_t body_at  # 0 if there is none


cdef int pattern_make(Pattern* pattern, Message message) except -1:
    cdef size_t routing_size = PyBytes_GET_SIZE(message.routing)
    cdef size_t header_size = PyBytes_GET_SIZE(message.header)
    cdef size_t body_size = PyBytes_GET_SIZE(message.body)
    cdef octet* p
    pattern.size = routing_size + 1 + FRAME_OVERHEAD + header_size + (FRAME_OVERHEAD + body_size if body_size else 0)
    while pattern.size > pattern.capacity:
        pattern.data = <octet*>grown(pattern.data, &pattern.capacity, 1)
    p = store8(store_bytes(pattern.data, octets_of(message.routing), routing_size), C_FRAME_END)
    pattern.header_at = routing_size + 2
    p = store32(store16(store8(p, C_HEADER), 0), <uint32_t>header_size)
    p = store8(store_bytes(p, octets_of(message.header), header_size), C_FRAME_END)
    pattern.body_at = 0
    if body_size:
        pattern.body_at = p + 1 - pattern.data
        p = store32(store16(store8(p, C_BODY), 0), <uint32_t>body_size)
        store8(store_bytes(p, octets_of(message.body), body_size), C_FRAME_END)
    pattern.message = <PyObject*>message
    return 0


cdef int insert_into_many(Engine engine, Message message, tuple queues, int64_t now_ms) except -1:
    # Into the queues that are not deleted.
    cdef Py_ssize_t size = PyTuple_GET_SIZE(queues)
    cdef Py_ssize_t at
    cdef PyObject* queue
    cdef bint is_small = (message.held_bytes + PyBytes_GET_SIZE(message.routing)) < PATTERN_SIZE_MAX
    for at in range(size):
        look_ahead(queues, at, size)
        queue = PyTuple_GET_ITEM(queues, at)
        if (<Queue>queue).deleted or (is_small and copied_at_once(engine, <Queue>queue, message)):
            continue
        (<Queue>queue).insert(message, now_ms)
    engine.pattern.message = NULL
    return 0


cdef inline bint copied_at_once(Engine engine, Queue queue, Message message) except -1:
    # Does what Queue.insert does, if the case is simple; else returns False and does nothing.
    cdef Turn* turn
    cdef PyObject* consumer
    cdef PyObject* channel
    if queue.ready.count or queue.rotation == NULL or queue.rewrites or queue.last_values is not None:
        return False
    if message.suspect or queue.threshold or queue_waits_for_log(queue) or (queue.logged and message.kept):
        return False
    turn = rotation_turn(queue.rotation)
    if turn == NULL or not (<Consumer>turn.ready.first).no_ack:
        return False
    consumer = turn.ready.first
    channel = <PyObject*>(<Consumer>consumer).channel
    if <size_t>PyBytes_GET_SIZE(message.body) > (<Channel>channel).session.chunk_size():
        return False
    chain_rotate(&turn.ready)
    queue.next_sequence += 1
    queue.published += 1
    queue.delivered += 1
    engine.delivered += 1
    (<Consumer>consumer).served = True
    (<Consumer>consumer).delivered += 1
    (<Channel>channel).last_tag += 1
    if not (<Channel>channel).session.closed:
        # A hook may have sent another message to many queues meanwhile.
        if engine.pattern.message != <PyObject*>message:
            pattern_make(&engine.pattern, message)
        write_copy(<Channel>channel, (<Consumer>consumer).tag, PyBytes_GET_SIZE(message.routing), &engine.pattern)
    return True


cdef inline int write_copy(Channel channel, bytes consumer_tag, size_t routing_size, Pattern* pattern) except -1:
    # Like Session.write_delivery; never redelivered.
    cdef size_t tag_size = PyBytes_GET_SIZE(consumer_tag)
    cdef octet* p = channel.session.room(21 + tag_size + pattern.size)
    p = store32(store16(store8(p, C_METHOD), channel.number), <uint32_t>(14 + tag_size + routing_size))
    p = store8(store16(store16(p, C_BASIC), C_DELIVER), <uint8_t>tag_size)
    p = store_bytes(p, octets_of(consumer_tag), tag_size)
    p = store8(store64(p, channel.last_tag), False)
    store_bytes(p, pattern.data, pattern.size)
    store16(p + pattern.header_at, channel.number)
    if pattern.body_at:
        store16(p + pattern.body_at, channel.number)
    return 0


cdef inline PyObject* first_consumer(tuple queues, Py_ssize_t at, Py_ssize_t size) noexcept:
    # NULL if no consumer waits.
    cdef Turn* turn
    if at >= size:
        return NULL
    turn = (<Queue>PyTuple_GET_ITEM(queues, at)).rotation
    return turn.ready.first if turn != NULL else NULL


cdef inline void look_ahead(tuple queues, Py_ssize_t at, Py_ssize_t size) noexcept:
    # As in outlook.pxi: the memory for the next queues is prefetched while this queue is handled.
    cdef PyObject* ahead
    cdef Output* output
    if at + STEP_MANY_QUEUE < size:
        ahead = PyTuple_GET_ITEM(queues, at + STEP_MANY_QUEUE)
        fetch_lines(ahead, &(<Queue>ahead).deleted)
    if at + STEP_MANY_TURN < size:
        fetch_line((<Queue>PyTuple_GET_ITEM(queues, at + STEP_MANY_TURN)).rotation)
    ahead = first_consumer(queues, at + STEP_MANY_CONSUMER, size)
    if ahead != NULL:
        fetch_lines(ahead, &(<Consumer>ahead).after)
    ahead = first_consumer(queues, at + STEP_MANY_CHANNEL, size)
    if ahead != NULL:
        fetch_lines(<PyObject*>(<Consumer>ahead).channel, &(<Consumer>ahead).channel.is_touched)
        fetch_line(<PyObject*>(<Consumer>ahead).tag)
    ahead = first_consumer(queues, at + STEP_MANY_SESSION, size)
    if ahead != NULL:
        fetch_lines(<PyObject*>(<Consumer>ahead).channel.session, &(<Consumer>ahead).channel.session.is_dirty)
    ahead = first_consumer(queues, at + STEP_MANY_OUTPUT, size)
    if ahead != NULL:
        output = &(<Consumer>ahead).channel.session.output
        if output.data != NULL:
            fetch_ahead(octets_of(<bytes>output.data) + output.size)
