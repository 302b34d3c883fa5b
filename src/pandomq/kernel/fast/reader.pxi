# A consumer's way through a stream; see plain/reader.py.

cdef bytes FILTER_NAME = b"x-stream-filter-value"
# Stands for the delivered messages in the windows of channels: a stream keeps its messages, however they are settled.
cdef Message BLANK = Message(b"\0\0", b"", b"")


@cython.final
cdef class Reader:
    cdef Chunk chunk  # None if it has none
    cdef tuple filters  # as they stand in a header; None: all
    cdef int64_t next_offset
    cdef uint32_t position
    cdef bint is_wanting
    cdef bint match_unfiltered


cdef Reader new_reader():
    cdef Reader reader = Reader.__new__(Reader)
    reader.next_offset = -1
    return reader


cdef Reader reader_of(Consumer consumer):
    if consumer.reader is None:
        raise ValueError("not a consumer of a stream")
    return consumer.reader


cdef int reader_seek(Consumer consumer, int64_t offset, filters, bint match_unfiltered) except -1:
    cdef Reader reader = reader_of(consumer)
    if offset < 0:
        raise ValueError(f"offset {offset}")
    raw = tuple([b"S" + len(one).to_bytes(4, "big") + one for one in filters])
    reader.filters = raw or None
    reader.match_unfiltered = match_unfiltered
    reader.next_offset = offset
    reader.chunk = None
    reader.is_wanting = False
    consumer.wake()
    return 0


cdef int reader_read_from(Consumer consumer, Chunk chunk) except -1:
    cdef Reader reader = reader_of(consumer)
    cdef uint32_t position
    if not reader.is_wanting:
        return 0
    reader.is_wanting = False
    position = chunk.find(CHUNK_OFFSETS, reader.next_offset)
    if position < chunk.count:
        reader.chunk = chunk
        reader.position = position
    consumer.wake()
    return 0


cdef void reader_leave(Reader reader) noexcept:
    reader.chunk = None
    reader.is_wanting = False


cdef int reader_read(Consumer consumer, int64_t now_ms) except -1:
    # Delivers some messages, if there is no obstacle.
    cdef Reader reader = consumer.reader
    cdef int burst
    for burst in range(C_READ_BURST):
        if not reader_find_row(consumer, reader):
            return 0
        reader_deliver(consumer, reader, now_ms)
        if consumer.has_obstacle():
            return 0
    return 0


cdef inline bint reader_find_row(Consumer consumer, Reader reader) except -1:
    # Whether there is a message to deliver; otherwise the consumer has left its turn.
    while reader_turn_to_row(consumer, reader):
        reader.next_offset = reader.chunk.number(CHUNK_OFFSETS, reader.position)
        if reader.filters is None or reader_passes(reader):
            return True
        reader.next_offset += 1
        reader.position += 1
    return False


cdef inline bint reader_turn_to_row(Consumer consumer, Reader reader) except -1:
    cdef StreamEnd stream = consumer.queue.stream
    if 0 <= reader.next_offset < stream.committed_end and reader_turn_to_chunk(consumer, reader, stream):
        if reader.chunk.number(CHUNK_OFFSETS, reader.position) < stream.committed_end:
            return True
    chain_remove(consumer)
    if reader.next_offset >= 0 and not reader.is_wanting:
        chain_append(&stream.idle, consumer)
    return False


cdef inline bint reader_turn_to_chunk(Consumer consumer, Reader reader, StreamEnd stream) except -1:
    # Whether its chunk has a next message. Otherwise there is none yet, or it has requested a chunk.
    cdef Chunk end = stream.chunk
    if reader.chunk is not None and reader.position < reader.chunk.count:
        return True
    if reader.chunk is end:
        return False
    if end.count and reader.next_offset >= end.number(CHUNK_OFFSETS, 0):
        reader.chunk = end
        reader.position = end.find(CHUNK_OFFSETS, reader.next_offset)
        return reader.position < end.count
    reader.chunk = None
    if not reader.is_wanting:
        reader.is_wanting = True
        consumer.queue.engine.wanted_chunks.append(consumer)
    return False


cdef bint reader_passes(Reader reader) noexcept:
    cdef size_t size, start, end
    cdef const octet* header = reader.chunk.value(CHUNK_HEADERS, reader.position, &size)
    cdef Py_ssize_t at
    if (not find_field(header, size, octets_of(FILTER_NAME), PyBytes_GET_SIZE(FILTER_NAME), &start, &end)
            or header[start] != c'S'):
        return reader.match_unfiltered
    for at in range(PyTuple_GET_SIZE(reader.filters)):
        if same_bytes(<bytes>PyTuple_GET_ITEM(reader.filters, at), header + start, end - start):
            return True
    return False


cdef inline int reader_deliver(Consumer consumer, Reader reader, int64_t now_ms) except -1:
    cdef Queue queue = consumer.queue
    cdef Channel channel = consumer.channel
    cdef Entry entry
    consumer.served = True
    consumer.delivered += 1
    queue.delivered += 1
    queue.engine.delivered += 1
    channel.last_tag += 1
    if queue_samples(queue, <uint64_t>reader.next_offset + 1):
        trace_read(consumer, reader.chunk, reader.position)
    if not channel.session.closed:
        write_row(channel, consumer.tag, reader.chunk, reader.position)
    reader.next_offset += 1
    reader.position += 1
    if consumer.no_ack:
        return 0
    Py_INCREF(BLANK)
    entry.message = <PyObject*>BLANK
    entry.sequence = <uint64_t>reader.next_offset
    entry.term = 0
    entry.deadline_ms = NEVER
    entry.delivery_count = 0
    entry.redelivered = False
    consumer.unacked_count += 1
    channel.credit_used += 1
    return channel.keep_unacked(channel.last_tag, queue, &entry, <PyObject*>consumer, now_ms)


cdef inline int write_row(Channel channel, bytes consumer_tag, Chunk chunk, uint32_t position) except -1:
    # Like Session.write_delivery; never redelivered. The parts are copied once, from their columns into the output.
    cdef Session session = channel.session
    cdef size_t tag_size = PyBytes_GET_SIZE(consumer_tag)
    cdef size_t exchange_size, key_size, header_size, body_size, method_size
    cdef const octet* exchange = chunk.value(CHUNK_EXCHANGES, position, &exchange_size)
    cdef const octet* key = chunk.value(CHUNK_KEYS, position, &key_size)
    cdef const octet* header = chunk.value(CHUNK_HEADERS, position, &header_size)
    cdef const octet* body = chunk.value(CHUNK_BODIES, position, &body_size)
    cdef Splice splice
    cdef octet* p
    splice_find(header, header_size, &splice)
    method_size = 16 + tag_size + exchange_size + key_size
    p = session.room(method_size + FRAME_OVERHEAD + session.frames_size(splice.size, body_size))
    p = store32(store16(store8(p, C_METHOD), channel.number), <uint32_t>method_size)
    p = store8(store16(store16(p, C_BASIC), C_DELIVER), <uint8_t>tag_size)
    p = store8(store64(store_bytes(p, octets_of(consumer_tag), tag_size), channel.last_tag), 0)
    p = store_bytes(store8(p, <uint8_t>exchange_size), exchange, exchange_size)
    p = store8(store_bytes(store8(p, <uint8_t>key_size), key, key_size), C_FRAME_END)
    p = store32(store16(store8(p, C_HEADER), channel.number), <uint32_t>splice.size)
    p = store8(store_spliced(p, header, header_size, &splice, chunk.number(CHUNK_OFFSETS, position)), C_FRAME_END)
    session.store_body(p, channel.number, body, body_size)
    return 0


cdef inline int settle_read(Channel channel, Queue queue, Entry* entry, int method_id) except -1:
    # The credit has been returned already, and nothing else is to do: a stream keeps its messages.
    Py_DECREF(<object>entry.message)
    queue.unacked_count -= 1
    if method_id == C_ACK:
        channel.session.engine.acked += 1
        queue.acked += 1
    return 0
