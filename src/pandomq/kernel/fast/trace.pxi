# Events of messages of traced queues, collected row by row until the caller takes them in columns; see plain/trace.py.

cdef enum:
    KIND_PUBLISHED = 1
    KIND_UNROUTABLE = 2
    KIND_CONFIRMED = 3
    KIND_REFUSED = 4
    KIND_DELIVERED = 5
    KIND_REDELIVERED = 6
    KIND_ACKED = 7
    KIND_REQUEUED = 8
    KIND_EXPIRED = 9
    KIND_DEAD_LETTERED = 10
    KIND_DROPPED = 11
    REASON_NONE = 0
    REASON_MAXLEN = 3
    QUEUE_NAME_SIZE = 10
    CONSUMER_NAME_SIZE = 3
    UNKNOWN = -1


cdef struct TraceRow:
    int64_t time_us
    uint64_t sequence
    int64_t since_us
    int64_t held_us
    uint32_t size
    uint32_t queue
    uint32_t routing
    uint32_t consumer
    uint8_t kind
    uint8_t reason


@cython.final
cdef class Trace:
    cdef Engine engine
    cdef readonly uint64_t threshold
    cdef readonly uint64_t bytes_max
    cdef readonly uint64_t size_bytes
    cdef readonly uint64_t dropped
    cdef TraceRow* rows
    cdef size_t used
    cdef size_t capacity
    # Places in the tables; 0 stands for none. The places of the last row are cached: the next row often has the same.
    cdef dict queues
    cdef dict routings
    cdef dict consumers
    cdef PyObject* last_queue
    cdef PyObject* last_routing
    cdef PyObject* last_consumer
    cdef TraceRow last

    def __init__(self, Engine engine not None, uint64_t threshold, uint64_t bytes_max):
        self.engine = engine
        self.threshold = threshold
        self.bytes_max = bytes_max
        trace_begin(self)

    def __dealloc__(self):
        free(self.rows)

    @property
    def count(self):
        return self.used

    def take(self):
        taken = (
            self.used,
            self.dropped,
            trace_columns(self),
            [((<Queue>queue).queue_id, (<Queue>queue).label) for queue in self.queues],
            list(self.routings),
            [((<Consumer>consumer).channel.session.label, (<Consumer>consumer).tag) for consumer in self.consumers],
        )
        self.dropped = 0
        trace_begin(self)
        return taken


cdef int trace_begin(Trace trace) except -1:
    free(trace.rows)
    trace.rows = NULL
    trace.used = trace.capacity = 0
    trace.size_bytes = 0
    trace.queues = {}
    trace.routings = {}
    trace.consumers = {}
    trace.last_queue = trace.last_routing = trace.last_consumer = NULL
    trace.last.queue = trace.last.routing = trace.last.consumer = 0
    return 0


cdef bytes trace_columns(Trace trace):
    cdef size_t at
    cdef size_t count = trace.used
    cdef TraceRow* rows = trace.rows
    cdef bytes columns = PyBytes_FromStringAndSize(NULL, count * EVENT_SIZE)
    cdef octet* p = <octet*>PyBytes_AS_STRING(columns)
    for at in range(count):
        p = little64(p, <uint64_t>rows[at].time_us)
    for at in range(count):
        p = little64(p, rows[at].sequence)
    for at in range(count):
        p = little64(p, <uint64_t>rows[at].since_us)
    for at in range(count):
        p = little64(p, <uint64_t>rows[at].held_us)
    for at in range(count):
        p = little32(p, rows[at].size)
    for at in range(count):
        p = little32(p, rows[at].queue)
    for at in range(count):
        p = little32(p, rows[at].routing)
    for at in range(count):
        p = little32(p, rows[at].consumer)
    for at in range(count):
        p = store8(p, rows[at].kind)
    for at in range(count):
        p = store8(p, rows[at].reason)
    return columns


cdef inline bint trace_samples(Trace trace, uint64_t sequence) noexcept:
    return ((sequence * SAMPLE_SPREAD) >> 32) < trace.threshold


# --- what happens: to messages of queues that sample them, see queue_samples

cdef int trace_published(Queue queue, Message message, uint64_t sequence) except -1:
    cdef Trace trace = queue.gathered_by
    cdef Channel channel
    if message.traced_us == 0:
        message.traced_us = trace.engine.time_us
    trace_add(trace, KIND_PUBLISHED, REASON_NONE, queue, message.routing, NULL, sequence, message.body_size, 0, UNKNOWN)
    if trace.engine.publishing == NULL:
        return 0
    channel = <Channel>trace.engine.publishing
    if channel.mode != C_CONFIRM:
        return 0
    if channel.traced is None:
        channel.traced = deque()
    if len(channel.traced) >= C_TRACED_UNCONFIRMED_MAX:
        trace.dropped += 1
        return 0
    channel.traced.append((channel.confirms.published, queue, message.routing, sequence, trace.engine.time_us,
                           message.body_size))
    return 0


cdef int trace_unroutable(Trace trace, Message message) except -1:
    # The engine has counted it.
    cdef uint64_t number = trace.engine.unroutable
    if trace_samples(trace, number):
        trace_add(trace, KIND_UNROUTABLE, REASON_NONE, None, message.routing, NULL, number, message.body_size, 0,
                  UNKNOWN)
    return 0


cdef int trace_refused(Queue queue, Message message) except -1:
    # It has no sequence, and is identified by the number of publishes before it.
    if queue_samples(queue, queue.engine.published):
        trace_add(queue.gathered_by, KIND_REFUSED, REASON_MAXLEN, queue, message.routing, NULL, 0, message.body_size, 0,
                  UNKNOWN)
    return 0


cdef int trace_delivered(Queue queue, Entry* entry, PyObject* consumer) except -1:
    cdef int kind = KIND_REDELIVERED if entry.redelivered else KIND_DELIVERED
    return trace_entry(queue, kind, REASON_NONE, entry, consumer, UNKNOWN)


cdef int trace_read(Consumer consumer, Chunk chunk, uint32_t position) except -1:
    # Read from a stream.
    cdef Trace trace = consumer.queue.gathered_by
    cdef uint64_t sequence = <uint64_t>chunk.number(CHUNK_OFFSETS, position) + 1
    cdef size_t exchange_size, key_size, body_size
    cdef const octet* exchange
    cdef const octet* key
    cdef octet* p
    cdef bytes routing
    exchange = chunk.value(CHUNK_EXCHANGES, position, &exchange_size)
    key = chunk.value(CHUNK_KEYS, position, &key_size)
    chunk.value(CHUNK_BODIES, position, &body_size)
    routing = PyBytes_FromStringAndSize(NULL, exchange_size + key_size + 2)
    p = store_bytes(store8(<octet*>PyBytes_AS_STRING(routing), <uint8_t>exchange_size), exchange, exchange_size)
    store_bytes(store8(p, <uint8_t>key_size), key, key_size)
    return trace_add(trace, KIND_DELIVERED, REASON_NONE, consumer.queue, routing, <PyObject*>consumer, sequence,
                     body_size, max(0, trace.engine.time_us - chunk.number(CHUNK_TIMES, position)), UNKNOWN)


cdef int trace_settled(Unacked* unacked, int method_id, bint requeue) except -1:
    # A rejection that kills a message is traced as a death; a stream keeps its messages.
    cdef Queue queue = <Queue>unacked.queue
    cdef int64_t held_us = max(0, queue.engine.time_us - unacked.delivered_ms * 1000)
    if queue.deleted:
        return 0
    if method_id == C_ACK:
        return trace_entry(queue, KIND_ACKED, REASON_NONE, &unacked.entry, unacked.consumer, held_us)
    if requeue and queue.stream is None:
        return trace_entry(queue, KIND_REQUEUED, REASON_NONE, &unacked.entry, unacked.consumer, held_us)
    return 0


cdef int trace_died(Queue queue, Entry* entry, int reason, bint is_letter) except -1:
    cdef int kind = KIND_DROPPED
    if is_letter:
        kind = KIND_DEAD_LETTERED
    elif reason == C_EXPIRED:
        kind = KIND_EXPIRED
    return trace_entry(queue, kind, reason + 1, entry, NULL, UNKNOWN)


cdef int trace_confirmed(Channel channel, uint64_t first, uint64_t last, bint confirmed) except -1:
    # The publisher was sent the result for these numbers.
    cdef Queue queue
    cdef Trace trace
    cdef uint64_t number
    waiting = deque()
    while channel.traced:
        traced = channel.traced.popleft()
        number = traced[0]
        if number > last:
            channel.traced.appendleft(traced)
            break
        if number < first:
            waiting.append(traced)
            continue
        queue = traced[1]
        trace = queue.gathered_by
        if confirmed and trace is not None:
            trace_add(trace, KIND_CONFIRMED, REASON_NONE, queue, traced[2], NULL, traced[3], traced[5],
                      trace.engine.time_us - <int64_t>traced[4], UNKNOWN)
    if waiting:
        channel.traced.extendleft(reversed(waiting))
    return 0


# --- rows

cdef inline int trace_entry(Queue queue, int kind, int reason, Entry* entry, PyObject* consumer,
                            int64_t held_us) except -1:
    cdef Trace trace = queue.gathered_by
    cdef Message message = <Message>entry.message
    cdef int64_t since_us = UNKNOWN
    if message.traced_us:
        since_us = trace.engine.time_us - message.traced_us
    return trace_add(trace, kind, reason, queue, message.routing, consumer, entry.sequence, message.body_size,
                     since_us, held_us)


cdef int trace_add(Trace trace, int kind, int reason, Queue queue, bytes routing, PyObject* consumer,
                   uint64_t sequence, uint64_t size, int64_t since_us, int64_t held_us) except -1:
    cdef TraceRow* row
    if trace.size_bytes + EVENT_SIZE > trace.bytes_max:
        trace.dropped += 1
        return 0
    trace.size_bytes += EVENT_SIZE
    if trace.used == trace.capacity:
        trace.rows = <TraceRow*>grown(trace.rows, &trace.capacity, sizeof(TraceRow))
    if <PyObject*>queue != trace.last_queue:
        trace.last.queue = trace_place_of_queue(trace, queue)
        trace.last_queue = <PyObject*>queue
    if <PyObject*>routing != trace.last_routing:
        trace_turn_to_routing(trace, routing)
    if consumer != trace.last_consumer:
        trace.last.consumer = trace_place_of_consumer(trace, consumer)
        trace.last_consumer = consumer
    row = &trace.rows[trace.used]
    trace.used += 1
    row[0] = trace.last
    row.time_us = trace.engine.time_us
    row.sequence = sequence
    row.since_us = since_us
    row.held_us = held_us
    row.size = <uint32_t>min(size, <uint64_t>0xFFFFFFFF)
    row.kind = <uint8_t>kind
    row.reason = <uint8_t>reason
    return 0


cdef uint32_t trace_place_of_queue(Trace trace, Queue queue) except? 0:
    if queue is None:
        return 0
    place = trace.queues.get(queue)
    if place is None:
        place = trace.queues[queue] = len(trace.queues) + 1
        trace.size_bytes += QUEUE_NAME_SIZE + PyBytes_GET_SIZE(queue.label)
    return place


cdef int trace_turn_to_routing(Trace trace, bytes routing) except -1:
    # The table keeps the first object with these octets; another one that is equal may be gone before the next row.
    cdef PyObject* known = PyDict_GetItem(trace.routings, routing)
    trace.last_routing = NULL
    if known != NULL:
        trace.last.routing = <object>known
        return 0
    trace.last.routing = len(trace.routings) + 1
    trace.routings[routing] = trace.last.routing
    trace.size_bytes += PyBytes_GET_SIZE(routing)
    trace.last_routing = <PyObject*>routing
    return 0


cdef uint32_t trace_place_of_consumer(Trace trace, PyObject* consumer) except? 0:
    cdef Consumer named
    if consumer == NULL:
        return 0
    named = <Consumer>consumer
    place = trace.consumers.get(named)
    if place is None:
        place = trace.consumers[named] = len(trace.consumers) + 1
        trace.size_bytes += (CONSUMER_NAME_SIZE + PyBytes_GET_SIZE(named.channel.session.label)
                             + PyBytes_GET_SIZE(named.tag))
    return place
