# The records of one batch, in the form of records.py.

cdef struct LogBatch:
    Output output
    uint32_t count
    uint64_t total  # since start
    bint has_additions  # the batch has records other than dequeues


cdef enum:
    ENTRY_START_SIZE = 13
    DEQUEUE_SIZE = 21


cdef octet* log_record(LogBatch* log, size_t size) except NULL:
    # The place where the caller writes a record of this size. The first one leaves room for the entry's start.
    if log.count == 0:
        output_reserve(&log.output, ENTRY_START_SIZE)
    log.count += 1
    log.total += 1
    return output_reserve(&log.output, size)


cdef int log_enqueue(LogBatch* log, Message message, tuple queues, uint64_t round) except -1:
    # Writes one record for the logged queues among these (only those that accept the message in this round, unless it
    # is 0), each under its next sequence. 1 if there is any.
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t size = PyTuple_GET_SIZE(queues)
    cdef Py_ssize_t first
    cdef size_t count
    cdef bint written = False
    while at < size:
        first = at
        count = 0
        while at < size and count < C_QUEUES_PER_RECORD_MAX:
            count += is_logging(<Queue>PyTuple_GET_ITEM(queues, at), round)
            at += 1
        if count:
            log_places(log, message, queues, first, at, count, round)
            written = True
    return written


cdef bint log_is_synced(tuple queues, uint64_t round) noexcept:
    # Whether one of the logged queues among these requires its messages on the disks of enough brokers.
    cdef Py_ssize_t at
    cdef Queue queue
    for at in range(PyTuple_GET_SIZE(queues)):
        queue = <Queue>PyTuple_GET_ITEM(queues, at)
        if queue.synced and is_logging(queue, round):
            return True
    return False


cdef inline bint is_logging(Queue queue, uint64_t round) noexcept:
    if not queue.logged or queue.deleted or (queue.local and queue.engine.replicated):
        return False
    return round == 0 or queue.willing_in == round


cdef int log_places(LogBatch* log, Message message, tuple queues, Py_ssize_t first, Py_ssize_t end, size_t count,
                    uint64_t round) except -1:
    cdef size_t routing_size = PyBytes_GET_SIZE(message.routing)
    cdef size_t header_size = PyBytes_GET_SIZE(message.header)
    cdef size_t body_size = PyBytes_GET_SIZE(message.body)
    cdef octet* p = log_record(log, 15 + 16 * count + routing_size + header_size + body_size)
    cdef Py_ssize_t at
    cdef Queue queue
    log.has_additions = True
    p = little16(store8(p, C_RECORD_ENQUEUE), <uint16_t>count)
    for at in range(first, end):
        queue = <Queue>PyTuple_GET_ITEM(queues, at)
        if is_logging(queue, round):
            p = little64(little64(p, queue.queue_id), queue.next_sequence)
    p = little32(little32(little32(p, <uint32_t>routing_size), <uint32_t>header_size), <uint32_t>body_size)
    p = store_bytes(p, octets_of(message.routing), routing_size)
    p = store_bytes(p, octets_of(message.header), header_size)
    store_bytes(p, octets_of(message.body), body_size)
    return 0


cdef int log_range(LogBatch* log, Queue queue) except -1:
    # The sequences that the queue has collected.
    cdef octet* p = log_record(log, DEQUEUE_SIZE)
    p = little64(store8(p, C_RECORD_DEQUEUE), queue.queue_id)
    little32(little64(p, queue.gone_first), queue.gone_count)
    return 0


cdef int log_ranges(LogBatch* log, list dequeuing) except -1:
    cdef Queue queue
    for queue in dequeuing:
        log_range(log, queue)
        queue.gone_count = 0
    dequeuing.clear()
    return 0


cdef int log_command(LogBatch* log, bytes command) except -1:
    cdef size_t size = PyBytes_GET_SIZE(command)
    cdef octet* p = log_record(log, 5 + size)
    log.has_additions = True
    store_bytes(little32(store8(p, C_RECORD_COMMAND), <uint32_t>size), octets_of(command), size)
    return 0


cdef bytes log_seal(LogBatch* log, uint64_t now_ms):
    cdef bytes entry
    if log.count == 0:
        return None
    entry = output_take(&log.output)
    little32(little64(store8(<octet*>PyBytes_AS_STRING(entry), C_VERSION), now_ms), log.count)
    log.count = 0
    log.has_additions = False
    return entry
