# A client connection: its channels and the bytes that wait to be sent to it.

@cython.final
cdef class Session:
    cdef Engine engine
    cdef public object owner
    cdef public Routes routes
    cdef public Session uplink
    cdef public Trace trace
    cdef public bytes label
    cdef dict channels
    cdef Output output
    cdef public int64_t frame_max
    cdef public int64_t out_bytes_max
    # Consumers that rest because the session is full: first those that got a message since they were woken, then the
    # rest.
    cdef Chain served
    cdef Chain starved
    cdef readonly bint writable
    cdef bint closed
    cdef bint is_dirty  # in the engine's list of sessions with outgoing bytes

    def __init__(self, Engine engine not None, owner, Routes routes not None, int64_t frame_max, int64_t out_bytes_max):
        self.engine = engine
        self.owner = owner
        self.routes = routes
        self.channels = {}
        self.label = NO_BYTES
        self.frame_max = frame_max
        self.out_bytes_max = out_bytes_max
        self.writable = True

    def __dealloc__(self):
        output_clear(&self.output)

    @property
    def pending_bytes(self):
        return self.output.size

    def channel(self, uint16_t number):
        return self.channels.get(number)

    cdef inline bint is_full(self) noexcept:
        # The session's consumers must rest.
        return not self.writable or <int64_t>self.output.size > self.out_bytes_max

    # --- bytes

    def write(self, bytes data not None):
        self.put(octets_of(data), PyBytes_GET_SIZE(data))

    cdef inline octet* room(self, size_t size) except NULL:
        # The place where the caller writes `size` octets; the session must not be closed.
        if not self.is_dirty:
            self.is_dirty = True
            self.engine.dirty_sessions.append(self)
        return output_reserve(&self.output, size)

    cdef int put(self, const octet* data, size_t size) except -1:
        if not self.closed and size:
            memcpy(self.room(size), data, size)
        return 0

    def write_content(self, uint16_t number, bytes method not None, Message message not None):
        cdef octet* p
        cdef size_t size = PyBytes_GET_SIZE(method)
        if self.closed:
            return
        p = self.room(size + FRAME_OVERHEAD + self.content_size(message))
        p = store32(store16(store8(p, C_METHOD), number), <uint32_t>size)
        p = store8(store_bytes(p, octets_of(method), size), C_FRAME_END)
        self.store_content(p, number, message)

    cdef inline int write_delivery(self, uint16_t number, bytes consumer_tag, uint64_t tag, bint redelivered,
                                   Message message, Entry* place) except -1:
        # Ends with the place, if it is given.
        cdef octet* p
        cdef size_t consumer_tag_size = PyBytes_GET_SIZE(consumer_tag)
        cdef size_t routing_size = PyBytes_GET_SIZE(message.routing)
        cdef size_t size = 14 + consumer_tag_size + routing_size + (PLACE_SIZE if place != NULL else 0)
        if self.closed:
            return 0
        p = self.room(size + FRAME_OVERHEAD + self.content_size(message))
        p = store32(store16(store8(p, C_METHOD), number), <uint32_t>size)
        p = store8(store16(store16(p, C_BASIC), C_DELIVER), <uint8_t>consumer_tag_size)
        p = store_bytes(p, octets_of(consumer_tag), consumer_tag_size)
        p = store8(store64(p, tag), redelivered)
        p = store_bytes(p, octets_of(message.routing), routing_size)
        if place != NULL:
            p = store64(store64(p, place.sequence), place.term)
        self.store_content(store8(p, C_FRAME_END), number, message)
        return 0

    cdef inline size_t chunk_size(self) noexcept:
        return self.frame_max - FRAME_OVERHEAD if self.frame_max > FRAME_OVERHEAD else <size_t>-1

    cdef inline size_t content_size(self, Message message) noexcept:
        return self.frames_size(PyBytes_GET_SIZE(message.header), PyBytes_GET_SIZE(message.body))

    cdef inline size_t frames_size(self, size_t header_size, size_t body_size) noexcept:
        # Octets of the header frame and the body frames.
        cdef size_t chunk = self.chunk_size()
        cdef size_t frames = 0
        if body_size:
            frames = 1 if body_size <= chunk else (body_size + chunk - 1) / chunk
        return header_size + body_size + (1 + frames) * FRAME_OVERHEAD

    cdef inline void store_content(self, octet* p, uint16_t number, Message message) noexcept:
        cdef size_t header_size = PyBytes_GET_SIZE(message.header)
        p = store32(store16(store8(p, C_HEADER), number), <uint32_t>header_size)
        p = store8(store_bytes(p, octets_of(message.header), header_size), C_FRAME_END)
        self.store_body(p, number, octets_of(message.body), PyBytes_GET_SIZE(message.body))

    cdef inline void store_body(self, octet* p, uint16_t number, const octet* body, size_t left) noexcept:
        cdef size_t chunk = self.chunk_size()
        cdef size_t size
        while left:
            size = min(left, chunk)
            p = store32(store16(store8(p, C_BODY), number), <uint32_t>size)
            p = store8(store_bytes(p, body, size), C_FRAME_END)
            body += size
            left -= size

    def take(self):
        cdef bytes data = output_take(&self.output)
        self.wake()
        return data

    # --- flow

    def pause(self):
        self.writable = False

    def resume(self):
        self.writable = True
        self.wake()

    cdef void wake(self) noexcept:
        if self.is_full():
            return
        while self.starved.first != NULL:
            (<Consumer>self.starved.first).wake()
        while self.served.first != NULL:
            (<Consumer>self.served.first).wake()

    def close(self, int64_t now_ms):
        self.closed = True
        output_clear(&self.output)
        for channel in list(self.channels.values()):
            channel.close(now_ms)
