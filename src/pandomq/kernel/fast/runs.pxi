# Runs: consecutive inputs of one kind, as a scanner found them.

cdef struct Publish:
    PyObject* message
    uint64_t hashed  # of its routing
    size_t routing_at  # in the run's octets
    uint16_t routing_size
    uint16_t channel
    uint16_t flags


cdef struct Settlement:
    uint64_t tag
    uint16_t channel
    uint8_t method_id
    uint8_t multiple
    uint8_t requeue


@cython.final
cdef class PublishRun:
    # Routings stay octets until an object is needed: most messages get an object that is cached with their plan.
    cdef Publish* items
    cdef size_t size
    cdef size_t capacity
    cdef octet* routings
    cdef size_t routings_size
    cdef size_t routings_capacity

    def __dealloc__(self):
        cdef size_t at
        for at in range(self.size):
            message_drop(self.items[at].message)
        free(self.items)
        free(self.routings)

    def __len__(self):
        return self.size

    def __getitem__(self, Py_ssize_t position):
        cdef Publish* item = &self.items[run_position(position, self.size)]
        return item.channel, self.routed_message(item), item.flags

    cdef inline Message routed_message(self, Publish* item):
        cdef Message message = <Message>item.message
        if message.routing is None:
            message.routing = known_routing(self.routings + item.routing_at, item.routing_size, item.hashed)
        return message

    cdef inline int add(self, uint16_t channel, Message message, const octet* routing, uint16_t routing_size,
                        uint16_t flags) except -1:
        cdef Publish* item
        if self.size == self.capacity:
            self.items = <Publish*>grown(self.items, &self.capacity, sizeof(Publish))
        item = &self.items[self.size]
        if self.size and self.same_routing(item - 1, routing, routing_size):
            item[0] = (item - 1)[0]
        else:
            item.hashed = hash_octets(routing, routing_size)
            item.routing_at = self.keep_routing(routing, routing_size)
            item.routing_size = routing_size
        Py_INCREF(message)
        item.message = <PyObject*>message
        item.channel = channel
        item.flags = flags
        self.size += 1
        return 0

    cdef inline bint same_routing(self, Publish* item, const octet* routing, uint16_t size) noexcept:
        return item.routing_size == size and memcmp(self.routings + item.routing_at, routing, size) == 0

    cdef inline size_t keep_routing(self, const octet* routing, uint16_t size) except? 0:
        cdef size_t at = self.routings_size
        while at + size > self.routings_capacity:
            self.routings = <octet*>grown(self.routings, &self.routings_capacity, 1)
        memcpy(self.routings + at, routing, size)
        self.routings_size = at + size
        return at


@cython.final
cdef class SettleRun:
    cdef Settlement* items
    cdef size_t size
    cdef size_t capacity

    def __dealloc__(self):
        free(self.items)

    def __len__(self):
        return self.size

    def __getitem__(self, Py_ssize_t position):
        cdef Settlement* item = &self.items[run_position(position, self.size)]
        return item.channel, item.method_id, item.tag, item.multiple != 0, item.requeue != 0

    cdef inline Settlement* add(self) except NULL:
        if self.size == self.capacity:
            self.items = <Settlement*>grown(self.items, &self.capacity, sizeof(Settlement))
        self.size += 1
        return &self.items[self.size - 1]


cdef Py_ssize_t run_position(Py_ssize_t position, size_t size) except -1:
    if position < 0:
        position += size
    if position < 0 or <size_t>position >= size:
        raise IndexError(position)
    return position


cdef void* grown(void* items, size_t* capacity, size_t item_size) except NULL:
    # Grows the array to at least twice the room.
    cdef size_t larger = capacity[0] * 2 if capacity[0] else 8
    cdef void* moved = realloc(items, larger * item_size)
    if moved == NULL:
        raise MemoryError
    capacity[0] = larger
    return moved
