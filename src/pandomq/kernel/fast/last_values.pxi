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

    cdef int arrive(self, bytes key, uint64_t sequence, uint64_t* outdated) except -1:
        # 1 if there is an outdated message: an older one, which need not be ready, or the one that came.
        cdef PyObject* known
        cdef uint64_t newest
        if key is None:
            return 0
        known = PyDict_GetItem(self.newest, key)
        if known != NULL:
            newest = <object>known
            if newest > sequence:
                outdated[0] = sequence
                return 1
            if newest == sequence:
                return 0
            outdated[0] = newest
        self.newest[key] = sequence
        return known != NULL

    cdef int leave(self, bytes key, uint64_t sequence) except -1:
        # Forgets the key if the message that leaves was its newest.
        cdef PyObject* known
        if key is None:
            return 0
        known = PyDict_GetItem(self.newest, key)
        if known != NULL and <uint64_t>(<object>known) == sequence:
            del self.newest[key]
        return 0


cdef LastValues new_last_values(bytes header):
    values = <LastValues>LastValues.__new__(LastValues)
    values.header = header
    values.newest = {}
    return values
