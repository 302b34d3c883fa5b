# Applies log entries, in the form of records.py, to the queues they name.

cdef struct EntryReader:
    const octet* p
    const octet* end


cdef inline const octet* entry_take(EntryReader* reader, size_t size) except NULL:
    # The next `size` octets.
    cdef const octet* taken = reader.p
    if <size_t>(reader.end - taken) < size:
        raise BadEntry("ends too early")
    reader.p += size
    return taken


cdef int entry_verify(EntryReader reader, uint32_t count) except -1:
    # Raises BadEntry unless the entry has exactly this many complete records and nothing after them.
    cdef const octet* p
    cdef uint32_t at
    cdef octet kind
    for at in range(count):
        kind = entry_take(&reader, 1)[0]
        if kind == C_RECORD_ENQUEUE:
            entry_take(&reader, 16 * <size_t>from_little16(entry_take(&reader, 2)))
            p = entry_take(&reader, 12)
            entry_take(&reader, <size_t>from_little32(p) + from_little32(p + 4) + from_little32(p + 8))
        elif kind == C_RECORD_DEQUEUE:
            entry_take(&reader, DEQUEUE_SIZE - 1)
        elif kind == C_RECORD_COMMAND:
            entry_take(&reader, from_little32(entry_take(&reader, 4)))
        else:
            raise BadEntry(f"record kind {kind}")
    if reader.p != reader.end:
        raise BadEntry("goes on after its last record")
    return 0


@cython.final
cdef class Replay:
    cdef object hooks
    cdef dict queues  # the answers of the hooks for queue ids
    cdef Queue queue  # the last one
    cdef uint64_t queue_id
    cdef uint64_t term
    cdef int64_t now_ms
    cdef bytes header  # the last one
    cdef Traits traits  # and its traits

    cdef Queue find_queue(self, uint64_t queue_id):
        if queue_id != self.queue_id or self.queue is None:
            if queue_id not in self.queues:
                self.queues[queue_id] = self.hooks.find_queue(queue_id)
            self.queue = self.queues[queue_id]
            self.queue_id = queue_id
        return self.queue

    cdef int weigh(self) except -1:
        cdef Queue queue
        for queue in self.queues.values():
            if queue is not None:
                queue_weigh(queue)
        return 0

    cdef int enqueue(self, EntryReader* reader) except -1:
        cdef uint16_t count = from_little16(entry_take(reader, 2))
        cdef const octet* places = entry_take(reader, 16 * <size_t>count)
        cdef const octet* sizes = entry_take(reader, 12)
        cdef const octet* routing = entry_take(reader, from_little32(sizes))
        cdef const octet* header = entry_take(reader, from_little32(sizes + 4))
        cdef size_t header_size = from_little32(sizes + 4)
        cdef size_t body_size = from_little32(sizes + 8)
        cdef Message message
        cdef Queue queue
        cdef uint64_t sequence
        cdef uint16_t at
        if self.header is None or not same_bytes(self.header, header, header_size):
            self.header = copied(header, header_size)
            read_traits(header, header_size, &self.traits)
        message = stored_message(stored_routing(routing, from_little32(sizes)), self.header,
                                 entry_take(reader, body_size), body_size, &self.traits)
        for at in range(count):
            queue = self.find_queue(from_little64(places + 16 * at))
            sequence = from_little64(places + 16 * at + 8)
            if queue is not None and not queue.deleted:
                queue.restore(message, sequence, self.term, self.now_ms)
                if queue.withdrawable:
                    self.hooks.restored(queue, sequence, message)
        return 0

    cdef int dequeue(self, EntryReader* reader) except -1:
        cdef const octet* p = entry_take(reader, DEQUEUE_SIZE - 1)
        cdef Queue queue = self.find_queue(from_little64(p))
        if queue is not None:
            queue_drop_range(queue, from_little64(p + 8), from_little32(p + 16))
            queue_watch_time(queue)
        return 0

    cdef int command(self, EntryReader* reader) except -1:
        cdef size_t size = from_little32(entry_take(reader, 4))
        cdef bytes command = copied(entry_take(reader, size), size)
        # A command may change which queues there are.
        self.weigh()
        self.queues.clear()
        self.queue = None
        self.hooks.command(command)
        return 0


cdef int replay_entry(bytes entry, uint64_t term, object hooks) except -1:
    cdef Replay replay = Replay.__new__(Replay)
    cdef EntryReader reader
    cdef const octet* p
    cdef octet kind
    cdef uint32_t count, at
    reader.p = octets_of(entry)
    reader.end = reader.p + PyBytes_GET_SIZE(entry)
    p = entry_take(&reader, ENTRY_START_SIZE)
    if p[0] != C_VERSION:
        raise BadEntry(f"version {p[0]}")
    count = from_little32(p + 9)
    entry_verify(reader, count)
    replay.hooks = hooks
    replay.queues = {}
    replay.term = term
    replay.now_ms = <int64_t>from_little64(p + 1)
    hooks.began(replay.now_ms)
    for at in range(count):
        kind = entry_take(&reader, 1)[0]
        if kind == C_RECORD_ENQUEUE:
            replay.enqueue(&reader)
        elif kind == C_RECORD_DEQUEUE:
            replay.dequeue(&reader)
        else:
            replay.command(&reader)
    return replay.weigh()
