# The end of a stream: the chunk that grows, how much of it is committed, and which readers wait for more; see
# plain/stream.py.

@cython.final
cdef class StreamEnd:
    cdef Chunk chunk
    cdef int64_t chunk_bytes
    cdef int64_t chunk_age_ms
    cdef int64_t committed_end
    cdef Chain idle  # readers that have read everything committed
    cdef bint is_unsealed  # messages came in this batch


cdef bint queue_becomes_stream(Queue queue, bint stream, int64_t chunk_bytes, int64_t chunk_age_ms) except -1:
    # Whether the queue is a stream; then nothing else of its configuration applies.
    if queue.next_sequence == 1 and queue.members is None:
        if stream and not queue.logged:
            raise ValueError("a stream is logged")
        queue.stream = new_stream_end() if stream else None
    if queue.stream is None:
        queue.is_apart = queue.mirror
        return False
    queue.ttl_ms = queue.length_max = queue.bytes_max = queue.delivery_limit = -1
    queue.may_drop = queue.is_outlet = queue.dead_letters = queue.counts_deliveries = False
    queue.single_active = queue.withdrawable = queue.mirror = False
    queue.last_values = None
    queue.ready.priority_max = 0
    queue.synced = queue.is_asked = queue.is_apart = True
    queue.stream.chunk_bytes = chunk_bytes
    queue.stream.chunk_age_ms = chunk_age_ms
    return True


cdef StreamEnd new_stream_end():
    cdef StreamEnd stream = StreamEnd.__new__(StreamEnd)
    stream.chunk = Chunk.__new__(Chunk)
    return stream


# --- in

cdef inline int stream_insert(Queue queue, Message message, int64_t now_ms) except -1:
    # Takes the message under the queue's next sequence.
    queue.published += 1
    if queue_samples(queue, queue.next_sequence):
        trace_published(queue, message, queue.next_sequence)
    stream_append(queue, message, queue.next_sequence, now_ms)
    if not queue.stream.is_unsealed:
        queue.stream.is_unsealed = True
        queue.engine.unsealed_streams.append(queue)
    return 0


cdef int stream_restore(Queue queue, Message message, uint64_t sequence, int64_t now_ms) except -1:
    # Takes the message at its old place, unless it is there already.
    if sequence >= queue.next_sequence:
        stream_append(queue, message, sequence, now_ms)
        stream_commit(queue.stream, <int64_t>sequence)
    return 0


cdef inline int stream_append(Queue queue, Message message, uint64_t sequence, int64_t now_ms) except -1:
    cdef Chunk chunk = queue.stream.chunk
    cdef int64_t time_us = now_ms * 1000
    if chunk.count:
        time_us = max(time_us, chunk.number(CHUNK_TIMES, chunk.count - 1))
        if stream_is_full(queue.stream, chunk, time_us):
            queue.engine.full_chunks.append((queue, chunk))
            chunk = queue.stream.chunk = chunk_after(chunk)
    chunk.append(<int64_t>sequence - 1, time_us, message)
    queue.next_sequence = sequence + 1
    return 0


cdef inline bint stream_is_full(StreamEnd stream, Chunk chunk, int64_t time_us) noexcept:
    return (
        <int64_t>chunk.content_bytes >= stream.chunk_bytes
        or chunk.count >= C_CHUNK_MESSAGES_MAX
        or (time_us - chunk.number(CHUNK_TIMES, 0)) / 1000 >= stream.chunk_age_ms
    )


cdef int stream_reinstate(Queue queue, uint64_t next_sequence, bytes open_rows) except -1:
    cdef Chunk chunk
    if queue.stream is None:
        raise ValueError("not a stream")
    chunk = chunk_reopened(open_rows) if open_rows else Chunk.__new__(Chunk)
    if next_sequence < 1 or (chunk.count and chunk.number(CHUNK_OFFSETS, chunk.count - 1) + 2 > <int64_t>next_sequence):
        raise ValueError(f"the open chunk ends after {next_sequence}")
    queue.stream.chunk = chunk
    queue.next_sequence = next_sequence
    queue.stream.committed_end = 0
    stream_commit(queue.stream, <int64_t>next_sequence - 1)
    return 0


# --- out

cdef void stream_commit(StreamEnd stream, int64_t end) noexcept:
    # Messages before this offset may be read.
    if end > stream.committed_end:
        stream.committed_end = end
    while stream.idle.first != NULL:
        (<Consumer>stream.idle.first).wake()


cdef int stream_run(Queue queue, int64_t now_ms) except -1:
    # Delivers to readers what they may get, a few messages each in turn.
    cdef PyObject* consumer
    while True:
        consumer = rotation_next(queue.rotation)
        if consumer == NULL:
            return 0
        reader_read(<Consumer>consumer, now_ms)
