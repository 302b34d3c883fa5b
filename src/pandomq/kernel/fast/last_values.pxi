# Which message is the newest of its key, for queues that keep one message per key.
#
# An open-addressing hash table in C: each message is looked up when it arrives and when it leaves, so both have to be
# cheap.

cdef enum:
    VALUE_SLOTS_MIN = 16


cdef struct ValueSlot:
    uint64_t hashed
    PyObject* key  # owned: the raw value of the header; NULL if the slot is free
    uint64_t sequence  # of the newest message


@cython.final
cdef class LastValues:
    cdef bytes header
    cdef ValueSlot* slots  # at most half of them are used; NULL if none is
    cdef size_t mask
    cdef size_t count

    def __dealloc__(self):
        cdef size_t at
        if self.slots != NULL:
            for at in range(self.mask + 1):
                Py_XDECREF(self.slots[at].key)
            free(self.slots)

    cdef inline bytes key_of(self, Message message):
        # The key is needed twice, when the message arrives and when it leaves: it is read once.
        if message.key_name is not self.header:
            message.key_name = self.header
            message.key = self.read_key(message.header)
        return message.key

    cdef bytes read_key(self, bytes header):
        # Returns None if there is none, and an existing object if the key is known.
        cdef size_t start, end
        cdef const octet* octets = octets_of(header)
        cdef ValueSlot* slot
        if not find_field(octets, PyBytes_GET_SIZE(header), octets_of(self.header), PyBytes_GET_SIZE(self.header),
                          &start, &end):
            return None
        if self.count:
            slot = self.slot_of(octets + start, end - start, hash_octets(octets + start, end - start))
            if slot.key != NULL:
                return <bytes>slot.key
        return copied(octets + start, end - start)

    cdef inline ValueSlot* slot_of(self, const octet* key, size_t size, uint64_t hashed) noexcept:
        # The slot of the key, or the one where it would be put.
        cdef size_t at = hashed & self.mask
        while self.slots[at].key != NULL:
            if self.slots[at].hashed == hashed and same_bytes(<bytes>self.slots[at].key, key, size):
                break
            at = (at + 1) & self.mask
        return &self.slots[at]

    cdef int arrive(self, bytes key, uint64_t sequence, uint64_t* outdated) except -1:
        # 1 if a message is out of date: an older one, which need not be ready, or the one that arrived.
        cdef uint64_t hashed
        cdef ValueSlot* slot
        if key is None:
            return 0
        if self.slots == NULL or self.count * 2 > self.mask:
            self.resize(2 * (self.mask + 1) if self.slots != NULL else VALUE_SLOTS_MIN)
        hashed = hash_octets(octets_of(key), PyBytes_GET_SIZE(key))
        slot = self.slot_of(octets_of(key), PyBytes_GET_SIZE(key), hashed)
        if slot.key == NULL:
            Py_INCREF(key)
            slot[0] = ValueSlot(hashed, <PyObject*>key, sequence)
            self.count += 1
            return 0
        if slot.sequence == sequence:
            return 0
        outdated[0] = min(slot.sequence, sequence)
        slot.sequence = max(slot.sequence, sequence)
        return 1

    cdef inline int leave_message(self, Message message, uint64_t sequence) except -1:
        return self.leave(self.key_of(message), sequence) if self.count else 0

    cdef int leave(self, bytes key, uint64_t sequence) except -1:
        # Forgets the key if the message that leaves was its newest.
        cdef ValueSlot* slot
        if key is None or self.count == 0:
            return 0
        slot = self.slot_of(octets_of(key), PyBytes_GET_SIZE(key), hash_octets(octets_of(key), PyBytes_GET_SIZE(key)))
        if slot.key == NULL or slot.sequence != sequence:
            return 0
        Py_DECREF(<bytes>slot.key)
        self.count -= 1
        self.close_gap(slot - self.slots)
        if self.mask >= VALUE_SLOTS_MIN and self.count * 8 < self.mask:
            self.resize((self.mask + 1) / 2)
        return 0

    cdef void close_gap(self, size_t gap) noexcept:
        # A key is found by probing from its place to a free slot: the keys behind the gap move up where they may.
        cdef size_t at = gap
        while True:
            at = (at + 1) & self.mask
            if self.slots[at].key == NULL:
                break
            if ((at - self.slots[at].hashed) & self.mask) >= ((at - gap) & self.mask):
                self.slots[gap] = self.slots[at]
                gap = at
        self.slots[gap].key = NULL

    cdef int resize(self, size_t slots_count) except -1:
        cdef ValueSlot* before = self.slots
        cdef size_t count_before = self.mask + 1 if before != NULL else 0
        cdef size_t at, to
        self.slots = <ValueSlot*>calloc(slots_count, sizeof(ValueSlot))
        if self.slots == NULL:
            self.slots = before
            raise MemoryError
        self.mask = slots_count - 1
        for at in range(count_before):
            if before[at].key != NULL:
                to = before[at].hashed & self.mask
                while self.slots[to].key != NULL:
                    to = (to + 1) & self.mask
                self.slots[to] = before[at]
        free(before)
        return 0


cdef LastValues new_last_values(bytes header):
    values = <LastValues>LastValues.__new__(LastValues)
    values.header = header
    return values
