# A published message: the bytes a consumer gets, and the fields that were read out of them once.

@cython.final
cdef class Message:
    cdef readonly bytes routing
    cdef readonly bytes header
    cdef readonly bytes body
    # The raw value of a header that a queue has requested, and that header's name; None before.
    cdef bytes key
    cdef bytes key_name
    cdef readonly uint64_t body_size
    cdef readonly int64_t expiration_ms
    cdef public uint64_t producer
    cdef public uint64_t number
    cdef int64_t traced_us  # when it was published, if a trace has recorded it; else 0
    cdef size_t held_bytes  # memory that a holder keeps alive
    cdef uint32_t holders  # queues and windows that hold it
    cdef uint16_t body_room  # octets that fit into `body`, if it was made for this; else 0
    cdef uint8_t slab_place
    cdef Slab* slab  # for reuse; NULL for messages that are not reused
    cdef readonly int special
    cdef readonly int priority
    cdef readonly bint persistent
    cdef readonly bint kept
    cdef public bint suspect

    def __init__(self, bytes routing not None, bytes header not None, bytes body not None):
        cdef Traits traits
        read_traits(octets_of(header), PyBytes_GET_SIZE(header), &traits)
        self.routing = routing
        self.header = header
        self.body = body
        self.body_size = PyBytes_GET_SIZE(body)
        self.set_traits(&traits)

    def __dealloc__(self):
        if self.slab != NULL:
            # This was the last reference: the message's place can be used for a new one.
            self.slab.messages[self.slab_place] = NULL
            slab_give_back(self.slab, self.slab_place)

    cdef inline void set_traits(self, const Traits* traits) noexcept:
        self.persistent = traits.persistent
        self.kept = traits.persistent
        self.priority = traits.priority
        self.expiration_ms = traits.expiration_ms
        self.special = traits.special
        self.held_bytes = PyBytes_GET_SIZE(self.header) + PyBytes_GET_SIZE(self.body)

    @property
    def exchange(self):
        return self.routing[1 : 1 + octets_of(self.routing)[0]].decode("utf-8", "surrogateescape")

    @property
    def routing_key(self):
        return self.routing[2 + octets_of(self.routing)[0] :].decode("utf-8", "surrogateescape")

    def find_header(self, bytes name not None):
        return message_field(self, name)

    def unkept_copy(self):
        cdef Message copy = Message(self.routing, self.header, self.body)
        copy.producer = self.producer
        copy.number = self.number
        copy.suspect = self.suspect
        copy.traced_us = self.traced_us
        copy.kept = False
        return copy


cdef bytes message_field(Message message, bytes name):
    cdef size_t start, end
    cdef const octet* header = octets_of(message.header)
    if not find_field(header, PyBytes_GET_SIZE(message.header), octets_of(name), PyBytes_GET_SIZE(name), &start, &end):
        return None
    return PyBytes_FromStringAndSize(<const char*>header + start, end - start)


def routing_of(str exchange not None, str routing_key not None):
    names = [name.encode("utf-8", "surrogateescape") for name in (exchange, routing_key)]
    for name in names:
        if len(name) > 255:
            raise ValueError(f"{len(name)} bytes, but a short string has at most 255")
    return b"".join([bytes((len(name),)) + name for name in names])
