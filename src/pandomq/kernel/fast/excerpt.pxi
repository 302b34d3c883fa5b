# A log entry without its messages.

def without_messages(bytes entry not None):
    # An entry without messages is not copied.
    cdef EntryReader reader
    cdef const octet* start
    cdef const octet* p
    cdef octet* into
    cdef uint32_t count, at, kept = 0
    cdef size_t size = 0
    cdef bytes excerpt
    start = octets_of(entry)
    reader.p = start
    reader.end = start + PyBytes_GET_SIZE(entry)
    p = entry_take(&reader, ENTRY_START_SIZE)
    if p[0] != C_VERSION:
        raise BadEntry(f"version {p[0]}")
    count = from_little32(p + 9)
    entry_verify(reader, count)
    for at in range(count):
        size += excerpt_take(&reader, &kept)
    if kept == count:
        return entry
    excerpt = PyBytes_FromStringAndSize(NULL, ENTRY_START_SIZE + size)
    into = <octet*>PyBytes_AS_STRING(excerpt)
    memcpy(into, start, ENTRY_START_SIZE)
    little32(into + 9, kept)
    into += ENTRY_START_SIZE
    reader.p = start + ENTRY_START_SIZE
    for at in range(count):
        p = reader.p
        size = excerpt_take(&reader, &kept)
        memcpy(into, p, size)
        into += size
    return excerpt


cdef size_t excerpt_take(EntryReader* reader, uint32_t* kept) except? 0:
    # The size of the next record if it is a command, otherwise 0. The records are known to be complete.
    cdef const octet* p = reader.p
    cdef octet kind = entry_take(reader, 1)[0]
    if kind == C_RECORD_ENQUEUE:
        entry_take(reader, 16 * <size_t>from_little16(entry_take(reader, 2)))
        p = entry_take(reader, 12)
        entry_take(reader, <size_t>from_little32(p) + from_little32(p + 4) + from_little32(p + 8))
        return 0
    if kind == C_RECORD_DEQUEUE:
        entry_take(reader, DEQUEUE_SIZE - 1)
        return 0
    entry_take(reader, from_little32(entry_take(reader, 4)))
    kept[0] += 1
    return reader.p - p
