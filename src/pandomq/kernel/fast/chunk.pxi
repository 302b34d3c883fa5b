# Messages of a stream in columns, open or sealed; `pandomq.chunk_form` defines the form.
#
# Offsets, times and the ends of values grow together, by rows; the bytes of values grow separately.

cdef struct Column:
    octet* data
    size_t size  # size of the bytes of values only: for the other columns the number of messages is enough
    size_t capacity


cdef enum:
    CHUNK_COLUMNS = 10
    CHUNK_OFFSETS = 0
    CHUNK_TIMES = 1
    CHUNK_VALUES = 2  # the first of the columns that come in pairs: ends, and bytes
    CHUNK_EXCHANGES = 2
    CHUNK_KEYS = 4
    CHUNK_HEADERS = 6
    CHUNK_BODIES = 8
    CHUNK_TABLE_SIZE = 160
    CHUNK_ROWS_MIN = 16
    COLUMN_CAPACITY_MIN = 256
    COLUMN_SIZE_MAX = 0x7FFFFFFF
    SHORT_STRING_MAX = 255


cdef int column_grow(Column* column, size_t capacity) except -1:
    cdef octet* data = <octet*>realloc(column.data, capacity)
    if data == NULL:
        raise MemoryError
    column.data = data
    column.capacity = capacity
    return 0


cdef inline bint is_values(int column) noexcept nogil:
    # Whether the column has bytes of values.
    return column >= CHUNK_VALUES and column & 1


cdef inline size_t chunk_aligned(size_t size) noexcept nogil:
    return (size + 63) & ~<size_t>63


@cython.final
cdef class Chunk:
    cdef Column columns[CHUNK_COLUMNS]
    cdef bytes sealed_bytes  # None while the chunk is open; afterwards it contains the columns
    cdef readonly uint32_t count
    cdef uint32_t rows_capacity
    cdef size_t content_bytes  # decides whether the chunk is full

    def __dealloc__(self):
        if self.sealed_bytes is None:
            self.free_columns()

    cdef void free_columns(self) noexcept:
        cdef int at
        for at in range(CHUNK_COLUMNS):
            free(self.columns[at].data)
            self.columns[at].data = NULL
            self.columns[at].capacity = 0

    @staticmethod
    def open(bytes data not None):
        return chunk_opened(data)

    cdef inline int64_t number(self, int column, uint32_t position) noexcept:
        return <int64_t>from_little64(self.columns[column].data + 8 * <size_t>position)

    cdef inline const octet* value(self, int column, uint32_t position, size_t* size) noexcept:
        # One of the exchanges, keys, headers or bodies; `column` is the one with the ends.
        cdef const octet* ends = self.columns[column].data + 4 * <size_t>position
        cdef size_t start = from_little32(ends)
        size[0] = from_little32(ends + 4) - start
        return self.columns[column + 1].data + start

    cdef inline size_t column_size(self, int column, uint32_t count) noexcept:
        # Of the first `count` messages; there must be at least one.
        if column < CHUNK_VALUES:
            return 8 * <size_t>count
        if not is_values(column):
            return 4 * (<size_t>count + 1)
        return from_little32(self.columns[column - 1].data + 4 * <size_t>count)

    @property
    def first_offset(self):
        return self.number(CHUNK_OFFSETS, 0) if self.count else 0

    @property
    def last_offset(self):
        return self.number(CHUNK_OFFSETS, self.count - 1) if self.count else 0

    @property
    def first_time_us(self):
        return self.number(CHUNK_TIMES, 0) if self.count else 0

    @property
    def last_time_us(self):
        return self.number(CHUNK_TIMES, self.count - 1) if self.count else 0

    @property
    def size_bytes(self):
        cdef size_t size = chunk_aligned(CHUNK_HEAD_SIZE + CHUNK_TABLE_SIZE)
        cdef int at
        if self.sealed_bytes is not None:
            return PyBytes_GET_SIZE(self.sealed_bytes)
        if not self.count:
            return size + 4 * chunk_aligned(4)
        for at in range(CHUNK_COLUMNS):
            size += chunk_aligned(self.column_size(at, self.count))
        return size

    def add(self, int64_t offset, int64_t time_us, Message message not None):
        if self.sealed_bytes is not None:
            raise ValueError("the chunk is sealed")
        if self.count and (offset <= self.number(CHUNK_OFFSETS, self.count - 1)
                           or time_us < self.number(CHUNK_TIMES, self.count - 1)):
            raise ValueError("offsets must rise, and times not fall")
        self.append(offset, time_us, message)

    cdef inline int append(self, int64_t offset, int64_t time_us, Message message) except -1:
        cdef const octet* routing = octets_of(message.routing)
        cdef size_t size = PyBytes_GET_SIZE(message.routing)
        cdef size_t middle = 1 + routing[0]
        if middle >= size or middle + 1 + routing[middle] != size:
            raise ValueError("not an exchange and a routing key")
        return self.append_row(offset, time_us, routing + 1, middle - 1, routing + middle + 1, size - middle - 1,
                               octets_of(message.header), PyBytes_GET_SIZE(message.header), octets_of(message.body),
                               PyBytes_GET_SIZE(message.body))

    cdef int append_row(self, int64_t offset, int64_t time_us, const octet* exchange, size_t exchange_size,
                        const octet* key, size_t key_size, const octet* header, size_t header_size, const octet* body,
                        size_t body_size) except -1:
        cdef size_t more = exchange_size + key_size + header_size + body_size
        if self.content_bytes + more > COLUMN_SIZE_MAX:
            # No column has more than all of them together.
            self.check_room(exchange_size, key_size, header_size, body_size)
        if self.count == self.rows_capacity:
            self.grow_rows(max(self.rows_capacity * 2, <uint32_t>CHUNK_ROWS_MIN))
        self.make_room(CHUNK_EXCHANGES, exchange_size)
        self.make_room(CHUNK_KEYS, key_size)
        self.make_room(CHUNK_HEADERS, header_size)
        self.make_room(CHUNK_BODIES, body_size)
        little64(self.columns[CHUNK_OFFSETS].data + 8 * <size_t>self.count, <uint64_t>offset)
        little64(self.columns[CHUNK_TIMES].data + 8 * <size_t>self.count, <uint64_t>time_us)
        self.append_value(CHUNK_EXCHANGES, exchange, exchange_size)
        self.append_value(CHUNK_KEYS, key, key_size)
        self.append_value(CHUNK_HEADERS, header, header_size)
        self.append_value(CHUNK_BODIES, body, body_size)
        self.count += 1
        self.content_bytes += more + C_CHUNK_ROW_BYTES
        return 0

    cdef int check_room(self, size_t exchange_size, size_t key_size, size_t header_size, size_t body_size) except -1:
        if (self.columns[CHUNK_EXCHANGES + 1].size + exchange_size > COLUMN_SIZE_MAX
                or self.columns[CHUNK_KEYS + 1].size + key_size > COLUMN_SIZE_MAX
                or self.columns[CHUNK_HEADERS + 1].size + header_size > COLUMN_SIZE_MAX
                or self.columns[CHUNK_BODIES + 1].size + body_size > COLUMN_SIZE_MAX):
            raise OverflowError("the chunk is full")
        return 0

    cdef int grow_rows(self, uint32_t capacity) except -1:
        cdef int at
        for at in range(CHUNK_COLUMNS):
            if at < CHUNK_VALUES:
                column_grow(&self.columns[at], 8 * <size_t>capacity)
            elif not is_values(at):
                column_grow(&self.columns[at], 4 * (<size_t>capacity + 1))
                little32(self.columns[at].data, 0)
        self.rows_capacity = capacity
        return 0

    cdef inline int make_room(self, int column, size_t more) except -1:
        cdef Column* values = &self.columns[column + 1]
        if values.size + more > values.capacity:
            column_grow(values, max(values.size + more, values.capacity * 2, <size_t>COLUMN_CAPACITY_MIN))
        return 0

    cdef inline void append_value(self, int column, const octet* data, size_t size) noexcept:
        cdef Column* values = &self.columns[column + 1]
        memcpy(values.data + values.size, data, size)
        values.size += size
        little32(self.columns[column].data + 4 * (<size_t>self.count + 1), <uint32_t>values.size)

    def seal(self):
        cdef bytes data
        if not self.count:
            raise ValueError("the chunk is empty")
        if self.sealed_bytes is None:
            data = chunk_sealed(self, self.count)
            self.free_columns()
            chunk_turn_to(self, data)
        return self.sealed_bytes

    def seal_rows(self, count):
        if not 0 < count <= self.count:
            raise ValueError(f"{count} of {self.count} messages")
        return chunk_sealed(self, count)

    def let_go(self):
        if self.sealed_bytes is None:
            raise ValueError("the chunk is open")
        self.count = 0
        self.sealed_bytes = NO_BYTES

    cdef uint32_t find(self, int column, int64_t wanted) noexcept:
        # The first position whose number is not lower.
        cdef uint32_t low = 0
        cdef uint32_t high = self.count
        cdef uint32_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.number(column, middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def find_offset(self, int64_t offset):
        return self.find(CHUNK_OFFSETS, offset)

    def find_time(self, int64_t time_us):
        return self.find(CHUNK_TIMES, time_us)

    def row(self, uint32_t position):
        cdef list row
        cdef const octet* data
        cdef size_t size
        cdef int at
        if position >= self.count:
            raise IndexError(position)
        row = [self.number(CHUNK_OFFSETS, position), self.number(CHUNK_TIMES, position)]
        for at in range(CHUNK_VALUES, CHUNK_COLUMNS, 2):
            data = self.value(at, position, &size)
            row.append(copied(data, size))
        return tuple(row)


cdef Chunk chunk_after(Chunk before):
    # An empty chunk with the capacity of the one before it, so that it need not move while it grows.
    cdef Chunk chunk = Chunk.__new__(Chunk)
    cdef int at
    chunk.grow_rows(before.count + before.count / 8 + 1)
    for at in range(CHUNK_VALUES, CHUNK_COLUMNS, 2):
        if before.columns[at + 1].size:
            column_grow(&chunk.columns[at + 1], before.columns[at + 1].size + before.columns[at + 1].size / 8)
    return chunk
