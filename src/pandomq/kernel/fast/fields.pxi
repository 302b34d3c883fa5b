# Reads just enough of a content header. An offset of 0 means malformed: properties never begin there. Headers are
# walked through to their innermost tables, though only the outermost names count: headers that one client garbled must
# never reach the decoder of another.

cdef struct Traits:
    int64_t expiration_ms
    int priority
    int special
    bint persistent


cdef enum:
    FLAGS_OFFSET = 12
    PROPERTIES_OFFSET = 14
    FLAG_CONTENT_TYPE = 1 << 15
    FLAG_CONTENT_ENCODING = 1 << 14
    FLAG_HEADERS = 1 << 13
    FLAG_DELIVERY_MODE = 1 << 12
    FLAG_PRIORITY = 1 << 11
    FLAG_CORRELATION_ID = 1 << 10
    FLAG_REPLY_TO = 1 << 9
    FLAG_EXPIRATION = 1 << 8
    FLAG_MESSAGE_ID = 1 << 7
    FLAG_TIMESTAMP = 1 << 6
    FLAG_TYPE = 1 << 5
    FLAG_USER_ID = 1 << 4
    FLAG_APP_ID = 1 << 3
    FLAG_CLUSTER_ID = 1 << 2
    FLAGS_UNASSIGNED = 3


cdef inline void traits_malformed(Traits* traits) noexcept nogil:
    traits.persistent = False
    traits.priority = 0
    traits.expiration_ms = -1
    traits.special = C_SPECIAL_MALFORMED


cdef inline size_t after_short_string(const octet* header, size_t size, size_t offset) noexcept nogil:
    if offset == 0 or offset >= size or offset + 1 + header[offset] > size:
        return 0
    return offset + 1 + header[offset]


cdef inline size_t after_long(const octet* header, size_t limit, size_t offset) noexcept nogil:
    # The end of a value that begins with its length in four octets.
    if offset == 0 or offset + 4 > limit or load32(header + offset) > limit - offset - 4:
        return 0
    return offset + 4 + load32(header + offset)


cdef inline size_t after_value(const octet* header, size_t limit, size_t offset) noexcept nogil:
    # `offset` is that of the type octet, which lies within the limit.
    cdef octet kind = header[offset]
    cdef size_t size
    if kind == c'S' or kind == c'x' or kind == c'A' or kind == c'F':
        return after_long(header, limit, offset + 1)
    if kind == c'V':
        size = 0
    elif kind == c't' or kind == c'b' or kind == c'B':
        size = 1
    elif kind == c's' or kind == c'u':
        size = 2
    elif kind == c'I' or kind == c'i' or kind == c'f':
        size = 4
    elif kind == c'D':
        size = 5
    elif kind == c'l' or kind == c'L' or kind == c'd' or kind == c'T':
        size = 8
    else:
        return 0
    return offset + 1 + size if offset + 1 + size <= limit else 0


cdef bint nested_is_sound(const octet* header, size_t start, int depth) noexcept nogil:
    # Looks into the value whose type octet is at start, and which ends within what encloses it.
    cdef octet kind = header[start]
    cdef size_t offset, end
    if kind != c'A' and kind != c'F':
        return True
    if depth >= C_FIELD_TABLE_DEPTH_MAX:
        return False
    offset = start + 5
    end = offset + load32(header + start + 1)
    while offset < end:
        if kind == c'F':
            offset += 1 + header[offset]
            if offset >= end:
                return False
        start = offset
        offset = after_value(header, end, start)
        if offset == 0 or not nested_is_sound(header, start, depth + 1):
            return False
    return True


cdef int scan_headers(const octet* header, size_t size, size_t offset) noexcept nogil:
    # The special features of the table at offset; SPECIAL_MALFORMED if it cannot be walked through.
    cdef size_t end = after_long(header, size, offset)
    cdef size_t start
    cdef octet length
    cdef int special = 0
    cdef int numbering = 0
    if end == 0:
        return C_SPECIAL_MALFORMED
    offset += 4
    while offset < end:
        length = header[offset]
        start = offset + 1 + length
        if start >= end:
            return C_SPECIAL_MALFORMED
        if length == 2 and memcmp(header + offset + 1, b"CC", 2) == 0:
            special |= C_SPECIAL_COPIES
        elif length == 3 and memcmp(header + offset + 1, b"BCC", 3) == 0:
            special |= C_SPECIAL_COPIES
        elif length == 7 and memcmp(header + offset + 1, b"x-delay", 7) == 0:
            special |= C_SPECIAL_DELAY
        elif length == 10 and memcmp(header + offset + 1, b"x-producer", 10) == 0:
            numbering |= 1
        elif length == 10 and memcmp(header + offset + 1, b"x-sequence", 10) == 0:
            numbering |= 2
        offset = after_value(header, end, start)
        if offset == 0 or not nested_is_sound(header, start, 1):
            return C_SPECIAL_MALFORMED
    # Either of the two alone means nothing.
    return special | C_SPECIAL_PRODUCER if numbering == 3 else special


cdef int64_t read_milliseconds(const octet* digits, size_t size) noexcept nogil:
    # -1 for a value that is not a number in plain digits, or is larger than any time the kernel can represent.
    cdef int64_t value = 0
    cdef size_t at
    if size == 0:
        return -1
    for at in range(size):
        if digits[at] < c'0' or digits[at] > c'9':
            return -1
        if value <= C_EXPIRATION_MS_MAX:
            value = value * 10 + (digits[at] - c'0')
    return value if value <= C_EXPIRATION_MS_MAX else -1


cdef void read_traits(const octet* header, size_t size, Traits* traits) noexcept nogil:
    cdef uint16_t flags
    cdef size_t offset = PROPERTIES_OFFSET
    cdef size_t start
    traits_malformed(traits)
    if size < PROPERTIES_OFFSET:
        return
    flags = load16(header + FLAGS_OFFSET)
    if flags & FLAGS_UNASSIGNED:
        return
    traits.special = 0
    if flags & FLAG_CONTENT_TYPE:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_CONTENT_ENCODING:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_HEADERS:
        traits.special |= scan_headers(header, size, offset)
        offset = after_long(header, size, offset)
    if flags & FLAG_DELIVERY_MODE and 0 < offset < size:
        traits.persistent = header[offset] == 2
        offset += 1
    elif flags & FLAG_DELIVERY_MODE:
        offset = 0
    if flags & FLAG_PRIORITY and 0 < offset < size:
        traits.priority = header[offset]
        offset += 1
    elif flags & FLAG_PRIORITY:
        offset = 0
    if flags & FLAG_CORRELATION_ID:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_REPLY_TO:
        start = offset + 1
        offset = after_short_string(header, size, offset)
        if offset and offset - start >= 21 and memcmp(header + start, b"amq.rabbitmq.reply-to", 21) == 0:
            traits.special |= C_SPECIAL_REPLY_TO
    if flags & FLAG_EXPIRATION:
        start = offset + 1
        offset = after_short_string(header, size, offset)
        if offset:
            traits.expiration_ms = read_milliseconds(header + start, offset - start)
            if traits.expiration_ms < 0:
                traits.special |= C_SPECIAL_EXPIRATION
    if flags & FLAG_MESSAGE_ID:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_TIMESTAMP and offset:
        offset += 8
    if flags & FLAG_TYPE:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_USER_ID:
        traits.special |= C_SPECIAL_USER_ID
        offset = after_short_string(header, size, offset)
    if flags & FLAG_APP_ID:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_CLUSTER_ID:
        offset = after_short_string(header, size, offset)
    if offset != size or traits.special & C_SPECIAL_MALFORMED:
        traits_malformed(traits)


cdef bint find_field(const octet* header, size_t size, const octet* name, size_t name_size,
                     size_t* value_start, size_t* value_end) noexcept nogil:
    # The position of the raw value of the first entry of that name; False if there is none or the way to it is
    # malformed.
    cdef size_t offset = PROPERTIES_OFFSET
    cdef size_t end, start
    cdef uint16_t flags
    if size < PROPERTIES_OFFSET:
        return False
    flags = load16(header + FLAGS_OFFSET)
    if flags & FLAGS_UNASSIGNED or not flags & FLAG_HEADERS:
        return False
    if flags & FLAG_CONTENT_TYPE:
        offset = after_short_string(header, size, offset)
    if flags & FLAG_CONTENT_ENCODING:
        offset = after_short_string(header, size, offset)
    end = after_long(header, size, offset)
    if end == 0:
        return False
    offset += 4
    while offset < end:
        start = offset + 1 + header[offset]
        if start >= end:
            return False
        value_end[0] = after_value(header, end, start)
        if value_end[0] == 0:
            return False
        if header[offset] == name_size and memcmp(header + offset + 1, name, name_size) == 0:
            value_start[0] = start
            return True
        offset = value_end[0]
    return False
