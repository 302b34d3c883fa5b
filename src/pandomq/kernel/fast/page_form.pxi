# The bytes of a page, in the form of plain/page_form.py.

cdef enum:
    PAGE_VERSION = 1
    PAGE_START_SIZE = 13
    PAGE_MESSAGE_SIZE = 9
    PAGE_MESSAGE_SIZE_MAX = PAGE_MESSAGE_SIZE + 44  # the maximum with all flags, without routing, header and body
    PAGE_REDELIVERED = 1
    PAGE_DEADLINE = 2
    PAGE_DELIVERY_COUNT = 4
    PAGE_TERM = 8
    PAGE_ROUTING = 16
    PAGE_HEADER = 32
    PAGE_PRODUCER = 64


cdef bytes page_encode(Ring* ring, size_t start, size_t end, uint32_t count, size_t size_max):
    # Writes the messages of these `count` slots, which are not larger than that.
    cdef bytes data = PyBytes_FromStringAndSize(NULL, size_max)
    cdef PyObject* shrunk
    cdef octet* p = <octet*>PyBytes_AS_STRING(data)
    cdef Entry* entry
    cdef Entry* before = NULL
    cdef uint64_t first = 0
    cdef size_t at
    for at in range(start, end):
        entry = ring_at(ring, at)
        if entry.message == NULL:
            continue
        if at + FETCH_MESSAGE_AHEAD < end:
            fetch_body_ahead(ring, at)
        if before == NULL:
            first = entry.sequence
            p = little64(little32(store8(p, PAGE_VERSION), count), first)
        p = page_store(p, entry, before, first)
        before = entry
    size_max = p - <octet*>PyBytes_AS_STRING(data)
    shrunk = <PyObject*>data
    Py_INCREF(data)
    data = None
    _PyBytes_Resize(&shrunk, size_max)
    data = <bytes>shrunk
    Py_DECREF(data)
    return data


cdef inline void fetch_body_ahead(Ring* ring, size_t at) noexcept:
    cdef PyObject* message = ring_at(ring, at + FETCH_MESSAGE_AHEAD).message
    if message != NULL:
        fetch_ahead(<PyObject*>(<Message>message).body)


cdef inline octet* page_store(octet* p, Entry* entry, Entry* before, uint64_t first) noexcept:
    cdef PyObject* message = entry.message
    cdef size_t body_size = PyBytes_GET_SIZE((<Message>message).body)
    cdef octet* start = p
    cdef octet flags = PAGE_REDELIVERED if entry.redelivered else 0
    p += PAGE_MESSAGE_SIZE
    if entry.deadline_ms != (before.deadline_ms if before != NULL else NEVER):
        flags |= PAGE_DEADLINE
        p = little64(p, <uint64_t>entry.deadline_ms)
    if entry.delivery_count:
        flags |= PAGE_DELIVERY_COUNT
        p = little32(p, entry.delivery_count)
    if entry.term != (before.term if before != NULL else 0):
        flags |= PAGE_TERM
        p = little64(p, entry.term)
    if before == NULL or not equal_bytes((<Message>message).routing, (<Message>before.message).routing):
        flags |= PAGE_ROUTING
        p = page_store_bytes(p, (<Message>message).routing)
    if before == NULL or not equal_bytes((<Message>message).header, (<Message>before.message).header):
        flags |= PAGE_HEADER
        p = page_store_bytes(p, (<Message>message).header)
    if (<Message>message).producer:
        flags |= PAGE_PRODUCER
        p = little64(little64(p, (<Message>message).producer), (<Message>message).number)
    little32(little32(store8(start, flags), <uint32_t>(entry.sequence - first)), <uint32_t>body_size)
    return store_bytes(p, octets_of((<Message>message).body), body_size)


cdef inline octet* page_store_bytes(octet* p, bytes data) noexcept:
    return store_bytes(little32(p, <uint32_t>PyBytes_GET_SIZE(data)), octets_of(data), PyBytes_GET_SIZE(data))


cdef inline bint equal_bytes(bytes one, bytes other) noexcept:
    return one is other or same_bytes(one, octets_of(other), PyBytes_GET_SIZE(other))


cdef struct PageReader:
    # The position in the bytes, and the fields that the next messages share with the last one.
    const octet* p
    const octet* end
    uint64_t term
    int64_t deadline_ms
    uint32_t delivery_count
    octet flags
    uint64_t producer
    uint64_t number
    const octet* routing
    size_t routing_size
    const octet* header
    size_t header_size
    const octet* body
    size_t body_size


cdef int reader_begin(PageReader* reader, Page page, bytes data) except -1:
    reader.p = octets_of(data)
    reader.end = reader.p + PyBytes_GET_SIZE(data)
    if reader.end - reader.p < PAGE_START_SIZE:
        raise ValueError("the bytes of the page end too early")
    if (reader.p[0] != PAGE_VERSION or from_little32(reader.p + 1) != page.slots
            or from_little64(reader.p + 5) != page.first):
        raise ValueError("not the bytes of this page")
    reader.p += PAGE_START_SIZE
    reader.term = 0
    reader.deadline_ms = NEVER
    reader.routing = reader.header = reader.p
    reader.routing_size = reader.header_size = 0
    return 0


cdef inline int reader_next(PageReader* reader, Page page, uint32_t position) except -1:
    cdef const octet* p = reader.p
    cdef size_t room = reader.end - p
    cdef size_t needed
    if room < PAGE_MESSAGE_SIZE:
        raise ValueError("the bytes of the page end too early")
    reader.flags = p[0]
    reader.body_size = from_little32(p + 5)
    if from_little32(p + 1) != page.offset(position) or reader.body_size != page.size(position):
        raise ValueError("not the bytes of this page")
    p += PAGE_MESSAGE_SIZE
    reader.delivery_count = 0
    if reader.flags & (PAGE_DEADLINE | PAGE_DELIVERY_COUNT | PAGE_TERM):
        needed = ((8 if reader.flags & PAGE_DEADLINE else 0) + (4 if reader.flags & PAGE_DELIVERY_COUNT else 0)
                  + (8 if reader.flags & PAGE_TERM else 0))
        if <size_t>(reader.end - p) < needed:
            raise ValueError("the bytes of the page end too early")
        if reader.flags & PAGE_DEADLINE:
            reader.deadline_ms = <int64_t>from_little64(p)
            p += 8
        if reader.flags & PAGE_DELIVERY_COUNT:
            reader.delivery_count = from_little32(p)
            p += 4
        if reader.flags & PAGE_TERM:
            reader.term = from_little64(p)
            p += 8
    if reader.flags & PAGE_ROUTING:
        p = reader_sized(reader, p, &reader.routing_size)
        reader.routing = p - reader.routing_size
    if reader.flags & PAGE_HEADER:
        p = reader_sized(reader, p, &reader.header_size)
        reader.header = p - reader.header_size
    reader.producer = reader.number = 0
    if reader.flags & PAGE_PRODUCER:
        if reader.end - p < 16:
            raise ValueError("the bytes of the page end too early")
        reader.producer = from_little64(p)
        reader.number = from_little64(p + 8)
        p += 16
    if <size_t>(reader.end - p) < reader.body_size:
        raise ValueError("the bytes of the page end too early")
    reader.body = p
    reader.p = p + reader.body_size
    return 0


cdef const octet* reader_sized(PageReader* reader, const octet* p, size_t* size) except NULL:
    # The end of a field that begins with its size.
    if reader.end - p < 4:
        raise ValueError("the bytes of the page end too early")
    size[0] = from_little32(p)
    if <size_t>(reader.end - p) - 4 < size[0]:
        raise ValueError("the bytes of the page end too early")
    return p + 4 + size[0]


cdef int page_verify(Page page, bytes data) except -1:
    # Raises ValueError if these are not the bytes of the page.
    cdef PageReader reader
    cdef uint32_t at
    reader_begin(&reader, page, data)
    for at in range(page.slots):
        reader_next(&reader, page, at)
    if reader.p != reader.end:
        raise ValueError("the bytes of the page go on after its last message")
    return 0


cdef int page_decode(Page page, bytes data, Ring* ring, uint64_t* held_bytes) except -1:
    # Appends the messages that are still in the queue to the ring. Changes nothing if these are not the bytes of the
    # page.
    cdef PageReader reader
    cdef Traits traits
    cdef bytes routing = NO_BYTES
    cdef bytes header = NO_BYTES
    cdef size_t kept = 0
    cdef uint64_t held = 0
    cdef uint32_t at
    cdef Entry* entry
    cdef Message message
    reader_begin(&reader, page, data)
    read_traits(octets_of(header), 0, &traits)
    ring_reserve(ring, page.count)
    try:
        for at in range(page.slots):
            reader_next(&reader, page, at)
            if reader.flags & PAGE_ROUTING:
                routing = stored_routing(reader.routing, reader.routing_size)
            if reader.flags & PAGE_HEADER:
                header = copied(reader.header, reader.header_size)
                read_traits(reader.header, reader.header_size, &traits)
            if page.gone != NULL and page.is_gone(at):
                continue
            message = stored_message(routing, header, reader.body, reader.body_size, &traits)
            message.kept = page.is_kept(at)
            message.producer = reader.producer
            message.number = reader.number
            message.holders = 1
            held += message.held_bytes
            entry = ring_at(ring, ring.used + kept)
            Py_INCREF(message)
            entry.message = <PyObject*>message
            entry.sequence = page.sequence(at)
            entry.term = reader.term
            entry.deadline_ms = reader.deadline_ms
            entry.delivery_count = reader.delivery_count
            entry.level = page.level
            entry.redelivered = reader.flags & PAGE_REDELIVERED or page.suspect
            kept += 1
        if reader.p != reader.end:
            raise ValueError("the bytes of the page go on after its last message")
    except:
        for at in range(kept):
            Py_DECREF(<object>ring_at(ring, ring.used + at).message)
        raise
    ring.used += kept
    ring.held_bytes += held
    held_bytes[0] = held
    return 0


cdef inline Message stored_message(bytes routing, bytes header, const octet* body, size_t body_size,
                                   const Traits* traits):
    # A message that is read from disk.
    cdef Message message = blank_message()
    message.routing = routing
    message.header = header
    message_fill_body(message, body, body_size)
    message.set_traits(traits)
    return message


cdef inline bytes stored_routing(const octet* data, size_t size):
    return known_routing(data, size, hash_octets(data, size))
