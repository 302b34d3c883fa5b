# Adds the message's offset to the headers of a delivery from a stream.

cdef enum:
    OFFSET_NAME_SIZE = 15
    OFFSET_ENTRY_SIZE = 25

cdef const char* OFFSET_ENTRY_START = b"\x0fx-stream-offsetl"  # with the length before the name, and the type after it


cdef struct Splice:
    size_t place  # position of the headers, or where they would be; 0: the content header stays unchanged
    size_t start  # start of the table's contents
    size_t cut_start  # an older entry of that name
    size_t cut_end
    size_t end  # of the table
    size_t size  # of the whole content header, with the new entry


cdef inline void splice_find(const octet* header, size_t size, Splice* splice) noexcept nogil:
    cdef size_t place = PROPERTIES_OFFSET
    cdef uint16_t flags
    splice.place = 0
    splice.size = size
    if size < PROPERTIES_OFFSET:
        return
    flags = load16(header + FLAGS_OFFSET)
    if flags & FLAGS_UNASSIGNED:
        return
    if flags & FLAG_CONTENT_TYPE:
        place = after_short_string(header, size, place)
    if flags & FLAG_CONTENT_ENCODING:
        place = after_short_string(header, size, place)
    if place == 0:
        return
    if not flags & FLAG_HEADERS:
        splice.start = splice.cut_start = splice.cut_end = splice.end = place
        splice.size = size + 4 + OFFSET_ENTRY_SIZE
        splice.place = place
    else:
        splice_into_table(header, size, place, splice)


cdef void splice_into_table(const octet* header, size_t size, size_t place, Splice* splice) noexcept nogil:
    # The whole table is searched; if a client put the name in twice, only the first one is removed.
    cdef size_t end = after_long(header, size, place)
    cdef size_t offset = place + 4
    cdef size_t start, after
    if end == 0:
        return
    splice.start = offset
    splice.cut_start = splice.cut_end = splice.end = end
    while offset < end:
        start = offset + 1 + header[offset]
        if start >= end:
            return
        after = after_value(header, end, start)
        if after == 0:
            return
        if (header[offset] == OFFSET_NAME_SIZE and splice.cut_start == end
                and memcmp(header + offset, OFFSET_ENTRY_START, 1 + OFFSET_NAME_SIZE) == 0):
            splice.cut_start = offset
            splice.cut_end = after
        offset = after
    splice.size = size + OFFSET_ENTRY_SIZE - (splice.cut_end - splice.cut_start)
    splice.place = place


cdef inline octet* store_spliced(octet* p, const octet* header, size_t size, const Splice* splice,
                                 uint64_t offset) noexcept nogil:
    cdef octet* table
    if splice.place == 0:
        return store_bytes(p, header, size)
    p = store16(store_bytes(p, header, FLAGS_OFFSET), load16(header + FLAGS_OFFSET) | FLAG_HEADERS)
    table = store_bytes(p, header + PROPERTIES_OFFSET, splice.place - PROPERTIES_OFFSET)
    p = store_bytes(table + 4, header + splice.start, splice.cut_start - splice.start)
    p = store_bytes(p, header + splice.cut_end, splice.end - splice.cut_end)
    p = store64(store_bytes(p, <const octet*>OFFSET_ENTRY_START, OFFSET_ENTRY_SIZE - 8), offset)
    store32(table, <uint32_t>(p - table - 4))
    return store_bytes(p, header + splice.end, size - splice.end)
