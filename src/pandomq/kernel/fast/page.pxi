# The index of a page, which stays in memory: which messages the page holds, how large they are, and which of them have
# left the queue. The forms of layout and state are those of plain/page.py.

cdef enum:
    LAYOUT_VERSION = 1
    LAYOUT_START_SIZE = 24
    LAYOUT_SEQUENCES = 1
    LAYOUT_SIZES = 2
    SIZE_MASK = 0x3FFFFFFF
    SIZE_DEADLINE_SHIFT = 30
    SIZE_KEPT_SHIFT = 31
    STATE_SUSPECT = 1
    STATE_GONE = 2
    STATE_KEYS = 4
    STATE_TERM = 8
    STATE_TERM_SIZE = 8

cdef uint32_t NO_KEY = 0xFFFFFFFF


@cython.final
cdef class Page:
    cdef public object owner
    cdef readonly Queue queue
    cdef bytes layout
    cdef bytes data  # the page is loaded, but one before it is not
    cdef list keys  # in a last-value queue
    cdef octet* gone  # a bit for each message that is gone; NULL if none is
    cdef const octet* offsets  # in the layout; NULL if the sequences are consecutive
    cdef const octet* sizes  # in the layout
    cdef uint64_t first
    cdef uint64_t term  # the term of all its messages; 0 if it is unknown
    cdef int64_t first_deadline_ms
    cdef readonly uint64_t size_bytes
    cdef uint32_t slots
    cdef readonly uint32_t count
    cdef uint32_t kept_count
    cdef uint32_t deadline_count
    cdef uint8_t size_step  # 0 if all have the same size
    cdef uint8_t level
    cdef bint suspect
    cdef bint wanted

    def __dealloc__(self):
        free(self.gone)

    cdef int take_layout(self, bytes layout) except -1:
        # The counts are those of a page from which no message is gone.
        cdef size_t size = PyBytes_GET_SIZE(layout)
        cdef const octet* p = octets_of(layout)
        cdef size_t numbers
        cdef uint32_t at
        if size < LAYOUT_START_SIZE + 4:
            raise ValueError("the layout of a page ends too early")
        self.layout = layout
        self.level = p[2]
        self.slots = self.count = from_little32(p + 4)
        self.first = from_little64(p + 8)
        self.first_deadline_ms = <int64_t>from_little64(p + 16)
        self.size_step = 4 if p[1] & LAYOUT_SIZES else 0
        self.offsets = p + LAYOUT_START_SIZE if p[1] & LAYOUT_SEQUENCES else NULL
        numbers = (self.slots if self.offsets != NULL else 0) + (self.slots if self.size_step else 1)
        if p[0] != LAYOUT_VERSION or self.slots == 0 or size != LAYOUT_START_SIZE + 4 * numbers:
            raise ValueError("not the layout of a page")
        self.sizes = p + LAYOUT_START_SIZE + (4 * <size_t>self.slots if self.offsets != NULL else 0)
        if self.size_step == 0:
            self.size_bytes = <uint64_t>self.slots * self.size(0)
            self.kept_count = self.slots * self.is_kept(0)
            self.deadline_count = self.slots * self.has_deadline(0)
            return 0
        for at in range(self.slots):
            self.size_bytes += self.size(at)
            self.kept_count += self.is_kept(at)
            self.deadline_count += self.has_deadline(at)
        return 0

    cdef inline uint32_t traits(self, uint32_t position) noexcept:
        return from_little32(self.sizes + <size_t>position * self.size_step)

    cdef inline uint32_t size(self, uint32_t position) noexcept:
        return self.traits(position) & SIZE_MASK

    cdef inline bint is_kept(self, uint32_t position) noexcept:
        return self.traits(position) >> SIZE_KEPT_SHIFT

    cdef inline bint has_deadline(self, uint32_t position) noexcept:
        return self.traits(position) >> SIZE_DEADLINE_SHIFT & 1

    cdef inline uint32_t offset(self, uint32_t position) noexcept:
        return from_little32(self.offsets + 4 * <size_t>position) if self.offsets != NULL else position

    cdef inline uint64_t sequence(self, uint32_t position) noexcept:
        return self.first + self.offset(position)

    cdef inline uint64_t last(self) noexcept:
        return self.sequence(self.slots - 1)

    cdef inline bint is_gone(self, uint32_t position) noexcept:
        return self.gone != NULL and self.gone[position >> 3] >> (position & 7) & 1

    cdef uint32_t find(self, uint64_t sequence) noexcept:
        # The first position whose sequence is not lower.
        cdef uint32_t low = 0
        cdef uint32_t high = self.slots
        cdef uint32_t middle
        while low < high:
            middle = low + (high - low) / 2
            if self.sequence(middle) < sequence:
                low = middle + 1
            else:
                high = middle
        return low

    cdef int remove(self, uint32_t position) except -1:
        cdef size_t size = (<size_t>self.slots + 7) / 8
        if self.gone == NULL:
            self.gone = <octet*>calloc(size, 1)
            if self.gone == NULL:
                raise MemoryError
        self.gone[position >> 3] |= <octet>(1 << (position & 7))
        self.count -= 1
        self.size_bytes -= self.size(position)
        self.kept_count -= self.is_kept(position)
        self.deadline_count -= self.has_deadline(position)
        return 0

    # --- for snapshots

    def index(self):
        cdef octet flags = STATE_SUSPECT if self.suspect else 0
        cdef bytes gone = b""
        cdef bytes keys = b""
        cdef bytes term = b""
        if self.kept_count == 0:
            return None
        if self.kept_count < self.slots:
            flags |= STATE_GONE
            gone = self.missing()
        if self.keys is not None:
            flags |= STATE_KEYS
            keys = b"".join([b"\xff\xff\xff\xff" if key is None else len(key).to_bytes(4, "little") + key
                             for key in self.keys])
        if self.term:
            flags |= STATE_TERM
            term = self.term.to_bytes(STATE_TERM_SIZE, "little")
        return self.layout, bytes((flags,)) + gone + keys + term

    cdef bytes missing(self):
        # A bit for each message that a snapshot does not hold.
        cdef size_t size = (<size_t>self.slots + 7) / 8
        cdef bytearray bits = bytearray(size)
        cdef octet* p = <octet*>PyByteArray_AS_STRING(bits)
        cdef uint32_t at
        if self.gone != NULL:
            memcpy(p, self.gone, size)
        if self.kept_count < self.count:
            for at in range(self.slots):
                if not self.is_kept(at):
                    p[at >> 3] |= <octet>(1 << (at & 7))
        return bytes(bits)

    cdef int take_state(self, bytes state) except -1:
        # As `index` returned it.
        cdef size_t size = PyBytes_GET_SIZE(state)
        cdef const octet* p = octets_of(state)
        cdef size_t bits_size = (<size_t>self.slots + 7) / 8
        cdef size_t end = 1
        cdef uint32_t at
        if size == 0:
            raise ValueError("the state of a page ends too early")
        self.suspect = p[0] & STATE_SUSPECT
        if p[0] & STATE_GONE:
            end += bits_size
            if end > size:
                raise ValueError("the state of a page ends too early")
            for at in range(self.slots):
                if p[1 + (at >> 3)] >> (at & 7) & 1:
                    self.remove(at)
        if p[0] & STATE_KEYS:
            end = self.take_keys(p, end, size)
        if p[0] & STATE_TERM:
            end += STATE_TERM_SIZE
            if end > size:
                raise ValueError("the state of a page ends too early")
            self.term = from_little64(p + end - STATE_TERM_SIZE)
        if end != size or self.count == 0:
            raise ValueError("not the state of this page")
        return 0

    cdef size_t take_keys(self, const octet* p, size_t at, size_t size) except 0:
        # The end of the keys.
        cdef uint32_t key_size
        self.keys = []
        for _ in range(self.slots):
            if size - at < 4:
                raise ValueError("the state of a page ends too early")
            key_size = from_little32(p + at)
            at += 4
            if key_size == NO_KEY:
                self.keys.append(None)
            elif size - at < key_size:
                raise ValueError("the state of a page ends too early")
            else:
                self.keys.append(copied(p + at, key_size))
                at += key_size
        return at


cdef Page new_page(Queue queue, bytes layout, object owner):
    cdef Page page = Page.__new__(Page)
    page.queue = queue
    page.owner = owner
    page.take_layout(layout)
    return page


cdef bytes page_layout(Ring* ring, size_t start, size_t end, uint32_t count, int number):
    # The size of the messages in these `count` slots.
    cdef uint32_t* numbers = <uint32_t*>malloc(2 * <size_t>count * 4)
    cdef uint32_t* sizes = numbers + count
    cdef size_t kept = 0
    cdef size_t number_count = 0
    cdef size_t at
    cdef uint64_t first = 0
    cdef int64_t first_deadline_ms = 0
    cdef octet parts = 0
    cdef Entry* entry
    cdef bytes layout
    cdef octet* p
    if numbers == NULL:
        raise MemoryError
    for at in range(start, end):
        entry = ring_at(ring, at)
        if entry.message == NULL:
            continue
        if kept == 0:
            first = entry.sequence
            first_deadline_ms = entry.deadline_ms
        numbers[kept] = <uint32_t>(entry.sequence - first)
        sizes[kept] = (<uint32_t>(<Message>entry.message).body_size
                       | <uint32_t>(entry.deadline_ms != NEVER) << SIZE_DEADLINE_SHIFT
                       | <uint32_t>(<Message>entry.message).kept << SIZE_KEPT_SHIFT)
        if sizes[kept] != sizes[0]:
            parts |= LAYOUT_SIZES
        kept += 1
    if numbers[count - 1] >= count:
        parts |= LAYOUT_SEQUENCES
    number_count = (count if parts & LAYOUT_SEQUENCES else 0) + (count if parts & LAYOUT_SIZES else 1)
    try:
        layout = PyBytes_FromStringAndSize(NULL, LAYOUT_START_SIZE + 4 * number_count)
        p = <octet*>PyBytes_AS_STRING(layout)
        p = little32(store8(store8(store8(store8(p, LAYOUT_VERSION), parts), <uint8_t>number), 0), count)
        p = little64(little64(p, first), <uint64_t>first_deadline_ms)
        kept = 0 if parts & LAYOUT_SEQUENCES else count
        for at in range(kept, kept + number_count):
            p = little32(p, numbers[at])
    finally:
        free(numbers)
    return layout
