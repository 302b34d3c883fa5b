# A publish, or a method of another broker, whose header or body is not complete yet.

cdef enum:
    BODY_AT_ONCE_MAX = 1 << 20  # a larger body gets memory as it arrives: a peer can announce much and send nothing


@cython.final
cdef class Incoming:
    cdef bytes method  # the payload of another broker's method, or the consumer tag of its delivery; None for a publish
    cdef bytes routing
    cdef bytes header  # None before it arrived
    cdef Traits traits
    cdef PyObject* body  # an owned bytes object of `capacity`, filled up to `size`
    cdef size_t size
    cdef size_t capacity
    cdef uint64_t missing
    cdef uint64_t body_size
    cdef uint64_t delivery_tag
    cdef uint64_t place[2]  # sequence and term of a delivery, if it has them
    cdef bint redelivered
    cdef bint is_delivery
    cdef uint16_t flags
    cdef bint skipped  # too large: already reported, its body is discarded

    def __dealloc__(self):
        Py_XDECREF(self.body)

    cdef int add(self, const octet* data, size_t size) except -1:
        # The missing part is known to be at least as long.
        cdef size_t wanted = self.size + size
        if size == 0:
            return 0
        if wanted > self.capacity:
            self.grow(wanted)
        memcpy(PyBytes_AS_STRING(<bytes>self.body) + self.size, data, size)
        self.size = wanted
        return 0

    cdef int grow(self, size_t wanted) except -1:
        cdef size_t capacity = max(wanted, self.capacity * 2, <size_t>BODY_AT_ONCE_MAX)
        if capacity > self.body_size:
            capacity = self.body_size
        if self.body == NULL:
            fresh = PyBytes_FromStringAndSize(NULL, capacity)
            Py_INCREF(fresh)
            self.body = <PyObject*>fresh
        else:
            _PyBytes_Resize(&self.body, capacity)
        self.capacity = capacity
        return 0

    cdef bytes take_body(self):
        # The capacity never exceeds the announced size, so a complete body fills it.
        body = <bytes>self.body
        Py_DECREF(body)
        self.body = NULL
        return body

    cdef size_t buffered_bytes(self) noexcept:
        cdef size_t buffered = PyBytes_GET_SIZE(self.routing) + self.size
        if self.header is not None:
            buffered += PyBytes_GET_SIZE(self.header)
        if self.method is not None:
            buffered += PyBytes_GET_SIZE(self.method)
        return buffered


cdef inline bint routing_fits(const octet* payload, size_t size) noexcept nogil:
    # Whether exchange, routing key and the octet of bits fill the arguments of a publish exactly.
    cdef size_t key
    if size <= 6:
        return False
    key = 7 + payload[6]
    return key < size and key + 1 + payload[key] == size - 1
