# Seals open chunks, and opens sealed ones.

cdef bytes chunk_sealed(Chunk chunk, uint32_t count):
    # The first `count` messages as sealed bytes; there must be at least one.
    cdef size_t place = chunk_aligned(CHUNK_HEAD_SIZE + CHUNK_TABLE_SIZE)
    cdef size_t size = place
    cdef size_t column_size
    cdef bytes data
    cdef octet* start
    cdef int at
    for at in range(CHUNK_COLUMNS):
        size += chunk_aligned(chunk.column_size(at, count))
    data = PyBytes_FromStringAndSize(NULL, size)
    start = <octet*>PyBytes_AS_STRING(data)
    memset(start, 0, place)
    for at in range(CHUNK_COLUMNS):
        column_size = chunk.column_size(at, count)
        little64(little64(start + CHUNK_HEAD_SIZE + 16 * at, place), column_size)
        if column_size:
            memcpy(start + place, chunk.columns[at].data, column_size)
        memset(start + place + column_size, 0, chunk_aligned(column_size) - column_size)
        place += chunk_aligned(column_size)
    head = encode_chunk_head(
        ChunkHead(count, chunk.number(CHUNK_OFFSETS, 0), chunk.number(CHUNK_OFFSETS, count - 1),
                  chunk.number(CHUNK_TIMES, 0), chunk.number(CHUNK_TIMES, count - 1), size,
                  crc32(memoryview(data)[CHUNK_HEAD_SIZE:]))
    )
    memcpy(start, octets_of(head), CHUNK_HEAD_SIZE)
    return data


cdef int chunk_turn_to(Chunk chunk, bytes data) except -1:
    # From now on it is read from these sealed bytes; its own columns are freed.
    cdef const octet* table = octets_of(data) + CHUNK_HEAD_SIZE
    cdef int at
    for at in range(CHUNK_COLUMNS):
        chunk.columns[at].data = <octet*>octets_of(data) + from_little64(table + 16 * at)
    chunk.sealed_bytes = data
    return 0


cdef Chunk chunk_opened(bytes data):
    cdef Chunk chunk = Chunk.__new__(Chunk)
    head = check_chunk(data, crc32)
    decode_chunk(data, checked=True)
    chunk_verify(data, head.rows)
    chunk.count = head.rows
    chunk_turn_to(chunk, data)
    return chunk


cdef int chunk_verify(bytes data, size_t count) except -1:
    # Raises BadChunk; a chunk that passes can be read without bounds checks.
    cdef const octet* table = octets_of(data) + CHUNK_HEAD_SIZE
    cdef int at
    for at in range(CHUNK_VALUES, CHUNK_COLUMNS, 2):
        chunk_verify_ends(octets_of(data) + from_little64(table + 16 * at), count, from_little64(table + 16 * at + 24),
                          SHORT_STRING_MAX if at < CHUNK_HEADERS else COLUMN_SIZE_MAX)
    return 0


cdef int chunk_verify_ends(const octet* ends, size_t count, size_t size, uint32_t longest) except -1:
    cdef uint32_t before = from_little32(ends)
    cdef uint32_t end
    cdef size_t at
    cdef bint sound = before == 0 and size <= COLUMN_SIZE_MAX
    for at in range(1, count + 1):
        end = from_little32(ends + 4 * at)
        sound = sound and end >= before and end - before <= longest
        before = end
    if not sound or before != size:
        raise BadChunk("a column's ends are not in order")
    return 0


cdef Chunk chunk_reopened(bytes data):
    # An open chunk with the messages of a sealed one. Raises BadChunk.
    cdef Chunk sealed = chunk_opened(data)
    cdef Chunk chunk = Chunk.__new__(Chunk)
    cdef const octet* parts[4]
    cdef size_t sizes[4]
    cdef uint32_t position
    cdef int at
    for position in range(sealed.count):
        for at in range(4):
            parts[at] = sealed.value(CHUNK_VALUES + 2 * at, position, &sizes[at])
        chunk.append_row(sealed.number(CHUNK_OFFSETS, position), sealed.number(CHUNK_TIMES, position), parts[0],
                         sizes[0], parts[1], sizes[1], parts[2], sizes[2], parts[3], sizes[3])
    return chunk
