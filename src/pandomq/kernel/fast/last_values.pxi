# Which message is the newest of its key, for queues that keep one message per key.

@cython.final
cdef class LastValues:
    cdef bytes header
    cdef dict newest  # sequence by the raw value of the header

    cdef inline bytes key_of(self, Message message):
        # Wanted twice, when the message comes and when it goes: it is read once.
        if message.key_name is not self.header:
            message.key_name = self.header
            message.key = message_field(message, self.header)
        return message.key

    cdef int arrive(self, Entry* entry, uint64_t* outdated) except -1:
        # 1 if there is an outdated message: an older one, which need not be ready, or the entry itself.
        cdef bytes key = self.key_of(<Message>entry.message)
        cdef PyObject* known
        cdef uint64_t sequence
        if key is None:
            return 0
        known = PyDict_GetItem(self.newest, key)
        if known != NULL:
            sequence = <object>known
            if sequence > entry.sequence:
                outdated[0] = entry.sequence
                return 1
            if sequence == entry.sequence:
                return 0
            outdated[0] = sequence
        self.newest[key] = entry.sequence
        return known != NULL

    cdef int leave(self, Entry* entry) except -1:
        # Forgets the key if the message that leaves was its newest.
        cdef bytes key = self.key_of(<Message>entry.message)
        cdef PyObject* known
        if key is None:
            return 0
        known = PyDict_GetItem(self.newest, key)
        if known != NULL and <uint64_t>(<object>known) == entry.sequence:
            del self.newest[key]
        return 0


cdef LastValues new_last_values(bytes header):
    values = <LastValues>LastValues.__new__(LastValues)
    values.header = header
    values.newest = {}
    return values
