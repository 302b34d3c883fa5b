# Cuts the bytes of one connection into frames and joins contents, in one pass over each read.
#
# Steps return 0 to go on and 1 after a fault, which is in `fault` then.

cdef enum:
    RECENT_HEADERS = 16  # a power of two


@cython.final
cdef class Scanner:
    cdef public int64_t frame_max
    cdef public uint64_t body_size_max
    cdef octet* tail  # an incomplete frame; NULL if there is none
    cdef size_t tail_size
    cdef size_t tail_capacity
    cdef dict contents  # by channel number; None if there are none
    cdef bint failed
    cdef bint inward
    # These are used only during one call of feed.
    cdef list outputs
    cdef PublishRun publishes  # the last output, if it is a run of this kind
    cdef SettleRun settlements
    cdef DeliveryRun deliveries
    cdef bytes last_header
    cdef Traits last_traits
    cdef PyObject* recent_headers[RECENT_HEADERS]  # owned; a publisher may alternate between a few
    cdef Traits recent_traits[RECENT_HEADERS]
    cdef bint has_recent_headers
    cdef object fault

    def __init__(self, int64_t frame_max, uint64_t body_size_max, bint inward=False):
        self.inward = inward
        self.frame_max = frame_max
        self.body_size_max = body_size_max

    def __dealloc__(self):
        free(self.tail)
        self.forget_headers()

    @property
    def buffered_bytes(self):
        cdef size_t buffered = self.tail_size
        if self.contents is not None:
            for content in self.contents.values():
                buffered += (<Incoming>content).buffered_bytes()
        return buffered

    def feed(self, data):
        cdef Py_buffer view
        cdef list outputs = []
        if self.failed:
            return outputs
        self.outputs = outputs
        self.last_header = NO_BYTES
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if self.scan(<const octet*>view.buf, view.len):
                outputs.append(self.fault)
                self.failed = True
                self.forget_tail()
                self.contents = None
        finally:
            PyBuffer_Release(&view)
            self.outputs = self.publishes = self.settlements = self.deliveries = self.fault = None
            self.last_header = None
            if self.has_recent_headers:
                self.forget_headers()
        return outputs

    cdef int scan(self, const octet* data, size_t size) except -1:
        cdef size_t offset = 0
        cdef size_t taken, payload_size
        cdef uint16_t number
        cdef octet kind
        if self.tail != NULL and self.complete_tail(data, size, &offset):
            return 1
        while size - offset >= 7:
            kind = data[offset]
            number = load16(data + offset + 1)
            payload_size = load32(data + offset + 3)
            if self.too_large(kind, payload_size):
                return 1
            if payload_size + FRAME_OVERHEAD > size - offset:
                break
            if kind == C_METHOD:
                if payload_size == SETTLEMENT_SIZE and one_more_settlement(self, number, data + offset + 7):
                    offset += SETTLEMENT_SIZE + FRAME_OVERHEAD
                    continue
                if self.inward:
                    taken = whole_delivery(self, data + offset, size - offset, number, payload_size)
                else:
                    taken = self.whole_publish(data + offset, size - offset, number, payload_size)
                if taken:
                    offset += taken
                    continue
            if self.frame(kind, number, data + offset + 7, payload_size):
                return 1
            offset += payload_size + FRAME_OVERHEAD
        if offset < size:
            self.keep_tail(data + offset, size - offset)
        return 0

    # --- the incomplete frame at the end of a read

    cdef int keep_tail(self, const octet* data, size_t size) except -1:
        cdef size_t wanted = self.tail_size + size
        cdef octet* tail
        if wanted > self.tail_capacity:
            tail = <octet*>realloc(self.tail, max(wanted, self.tail_capacity * 2))
            if tail == NULL:
                raise MemoryError
            self.tail = tail
            self.tail_capacity = max(wanted, self.tail_capacity * 2)
        memcpy(self.tail + self.tail_size, data, size)
        self.tail_size = wanted
        return 0

    cdef void forget_tail(self) noexcept:
        free(self.tail)
        self.tail = NULL
        self.tail_size = self.tail_capacity = 0

    cdef int complete_tail(self, const octet* data, size_t size, size_t* offset) except -1:
        # Adds to the kept frame what it lacks and no more, so that nothing is copied twice.
        cdef size_t payload_size, part
        cdef int failed
        if self.tail_size < 7:
            part = min(7 - self.tail_size, size)
            self.keep_tail(data, part)
            offset[0] = part
            if self.tail_size < 7:
                return 0
        payload_size = load32(self.tail + 3)
        if self.too_large(self.tail[0], payload_size):
            return 1
        part = min(payload_size + FRAME_OVERHEAD - self.tail_size, size - offset[0])
        self.keep_tail(data + offset[0], part)
        offset[0] += part
        if self.tail_size < payload_size + FRAME_OVERHEAD:
            return 0
        failed = self.frame(self.tail[0], load16(self.tail + 1), self.tail + 7, payload_size)
        self.forget_tail()
        return failed

    # --- frames

    cdef int fail(self, fault) except -1:
        self.fault = fault
        return 1

    cdef inline int too_large(self, octet kind, size_t size) except -1:
        # RabbitMQ tolerates clients that omit the eight octets around the payload.
        if self.frame_max > 0 and size > <size_t>self.frame_max:
            return self.fail(faults.frame_too_large(kind, size, self.frame_max))
        return 0

    cdef int frame(self, octet kind, uint16_t number, const octet* payload, size_t size) except -1:
        if payload[size] != C_FRAME_END:
            return self.fail(faults.bad_frame_end(kind, copied(payload, size), payload[size]))
        if kind == C_METHOD:
            return self.method(number, payload, size)
        if kind == C_HEADER:
            return self.header(number, payload, size)
        if kind == C_BODY:
            return self.body(number, payload, size)
        if kind == C_HEARTBEAT and size == 0:
            if number:
                return self.fail(faults.misplaced_frame(kind, b""))
            self.add_output(Frame(C_HEARTBEAT, 0, b""))
            return 0
        return self.fail(faults.unknown_frame(kind, copied(payload, size)))

    cdef size_t whole_publish(self, const octet* data, size_t size, uint16_t number, size_t method_size) except? 0:
        # A publish whose frames are adjacent in this read, as nearly all are. Returns the octets it takes; 0 if
        # anything about it is unusual: then its frames are read one by one.
        cdef const octet* method = data + 7
        cdef const octet* end = data + size
        cdef Message message
        if method_size < 9 or load32(method) != (C_BASIC << 16 | C_PUBLISH) or not routing_fits(method, method_size):
            return 0
        message = self.whole_content(method + method_size, number, &end)
        if message is None:
            return 0
        self.emit(number, message, method + 6, <uint16_t>(method_size - 7), method[method_size - 1] & C_PUBLISH_BITS)
        return end - data

    cdef inline Message whole_content(self, const octet* method_end, uint16_t number, const octet** stop):
        # The header and the body, if there is one, that follow a method's frame before `stop`, which becomes their end;
        # None if they are not complete.
        cdef const octet* header = method_end + FRAME_OVERHEAD
        cdef const octet* end = stop[0]
        cdef const octet* data
        cdef size_t header_size, body_size
        cdef Message message
        if end - header < PROPERTIES_OFFSET + 1 or method_end[0] != C_FRAME_END or number == 0:
            return None
        if (header - 7)[0] != C_HEADER or load16(header - 6) != number or load32(header) != <uint32_t>C_BASIC << 16:
            return None
        if self.contents is not None and number in self.contents:
            return None
        header_size = load32(header - 4)
        body_size = load64(header + 4)
        if header_size < PROPERTIES_OFFSET or header_size >= <size_t>(end - header) or body_size > self.body_size_max:
            return None
        if header[header_size] != C_FRAME_END or (self.frame_max > 0 and header_size > <size_t>self.frame_max):
            return None
        data = header + header_size + FRAME_OVERHEAD
        if body_size:
            if data > end or body_size >= <size_t>(end - data) or (data - 7)[0] != C_BODY or load16(data - 6) != number:
                return None
            if load32(data - 4) != body_size or data[body_size] != C_FRAME_END:
                return None
            if self.frame_max > 0 and body_size > <size_t>self.frame_max:
                return None
            stop[0] = data + body_size + 1
        else:
            stop[0] = header + header_size + 1
        message = blank_message()
        message.header = self.shared_header(header, header_size)
        message_fill_body(message, data, body_size)
        message.set_traits(&self.last_traits)
        return message

    # --- methods

    cdef int method(self, uint16_t number, const octet* payload, size_t size) except -1:
        cdef uint16_t method_id
        cdef Incoming content
        if size < 4:
            return self.fail(faults.unknown_frame(C_METHOD, copied(payload, size)))
        content = self.content(number)
        if content is not None:
            if not content.skipped:
                return self.fail(faults.expected_header() if content.header is None else faults.expected_body())
            # A client that was told that its body is too large need not send the rest of it.
            self.forget_content(number)
        method_id = load16(payload + 2)
        if load16(payload) == C_BASIC:
            if method_id == C_PUBLISH and not self.inward:
                return self.publish(number, payload, size)
            if self.inward and (method_id == C_DELIVER or method_id == C_RETURN or method_id == C_GET_OK):
                return arrive(self, number, method_id, payload, size)
            if method_id == C_ACK or method_id == C_NACK or method_id == C_REJECT:
                return settlement(self, number, method_id, payload, size)
        self.add_output(Frame(C_METHOD, number, copied(payload, size)))
        return 0

    cdef int publish(self, uint16_t number, const octet* payload, size_t size) except -1:
        cdef Incoming content
        if not routing_fits(payload, size):
            return self.fail(faults.undecodable_method(copied(payload + 4, size - 4), C_BASIC, C_PUBLISH))
        if number == 0:
            return self.fail(faults.method_on_channel_0(C_BASIC, C_PUBLISH))
        content = Incoming.__new__(Incoming)
        content.routing = copied(payload + 6, size - 7)
        content.flags = payload[size - 1] & C_PUBLISH_BITS
        return self.await_content(number, content)

    # --- contents

    cdef inline Incoming content(self, uint16_t number):
        return None if self.contents is None else <Incoming>self.contents.get(number)

    cdef int await_content(self, uint16_t number, Incoming content) except -1:
        if self.contents is None:
            self.contents = {}
        self.contents[number] = content
        return 0

    cdef int forget_content(self, uint16_t number) except -1:
        del self.contents[number]
        if not self.contents:
            self.contents = None
        return 0

    cdef int header(self, uint16_t number, const octet* payload, size_t size) except -1:
        cdef Incoming content
        if size < FLAGS_OFFSET:
            return self.fail(faults.unknown_frame(C_HEADER, copied(payload, size)))
        if number == 0:
            return self.fail(faults.misplaced_frame(C_HEADER, copied(payload, size)))
        content = self.content(number)
        if content is None:
            return self.fail(faults.expected_method())
        if content.header is not None:
            return self.fail(faults.expected_body())
        if load16(payload) != C_BASIC:
            return self.fail(faults.expected_class(load16(payload)))
        if load16(payload + 2):
            return self.fail(faults.expected_header())
        content.header = self.shared_header(payload, size)
        content.traits = self.last_traits
        content.missing = content.body_size = load64(payload + 4)
        if content.body_size > self.body_size_max:
            if content.method is not None:
                return self.fail(faults.body_too_large(content.body_size, self.body_size_max))
            content.skipped = True
            self.complete(number, content, NO_BYTES, content.flags | C_OVERSIZED)
        elif content.body_size == 0:
            self.forget_content(number)
            self.complete(number, content, NO_BYTES, content.flags)
        return 0

    cdef int body(self, uint16_t number, const octet* payload, size_t size) except -1:
        cdef Incoming content
        if number == 0:
            return self.fail(faults.misplaced_frame(C_BODY, copied(payload, size)))
        content = self.content(number)
        if content is None:
            return self.fail(faults.expected_method())
        if content.header is None:
            return self.fail(faults.expected_header())
        if size > content.missing:
            return self.fail(faults.body_too_long(size, content.missing))
        content.missing -= size
        if not content.skipped:
            content.add(payload, size)
        if content.missing == 0:
            self.forget_content(number)
            if not content.skipped:
                self.complete(number, content, content.take_body(), content.flags)
        return 0

    cdef int complete(self, uint16_t number, Incoming content, bytes body, uint16_t flags) except -1:
        cdef Message message = Message.__new__(Message)
        message.header = content.header
        message.body = body
        message.body_size = content.body_size
        message.set_traits(&content.traits)
        if content.method is not None:
            return arrived(self, number, content, message)
        return self.emit(number, message, octets_of(content.routing), <uint16_t>PyBytes_GET_SIZE(content.routing),
                         flags)

    # --- outputs

    cdef int add_output(self, output) except -1:
        self.outputs.append(output)
        self.publishes = None
        self.settlements = None
        self.deliveries = None
        return 0

    cdef inline int emit(self, uint16_t number, Message message, const octet* routing, uint16_t routing_size,
                         uint16_t flags) except -1:
        if self.publishes is None:
            run = PublishRun.__new__(PublishRun)
            self.add_output(run)
            self.publishes = run
        return self.publishes.add(number, message, routing, routing_size, flags)

    cdef inline bytes shared_header(self, const octet* data, size_t size):
        # Messages of one publisher mostly have equal headers, or a few different ones; each is kept and parsed once.
        # Sets last_traits.
        if not same_bytes(self.last_header, data, size):
            self.find_header(data, size)
        return self.last_header

    cdef int find_header(self, const octet* data, size_t size) except -1:
        # Headers of one size that differ, for example in a priority, most often differ in their last octets.
        cdef size_t slot = (size + data[size - 1] + 7 * data[size - 2]) & (RECENT_HEADERS - 1)
        cdef PyObject* known = self.recent_headers[slot]
        if known != NULL and same_bytes(<bytes>known, data, size):
            self.last_header = <bytes>known
            self.last_traits = self.recent_traits[slot]
            return 0
        self.last_header = copied(data, size)
        read_traits(data, size, &self.last_traits)
        Py_XDECREF(known)
        Py_INCREF(self.last_header)
        self.recent_headers[slot] = <PyObject*>self.last_header
        self.recent_traits[slot] = self.last_traits
        self.has_recent_headers = True
        return 0

    cdef void forget_headers(self) noexcept:
        cdef int slot
        for slot in range(RECENT_HEADERS):
            Py_XDECREF(self.recent_headers[slot])
            self.recent_headers[slot] = NULL
        self.has_recent_headers = False
