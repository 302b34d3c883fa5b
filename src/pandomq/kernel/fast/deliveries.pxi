# Runs of deliveries that another broker made, as a scanner found them.

cdef struct Delivery:
    PyObject* message  # owned
    uint64_t hashed  # its routing
    uint64_t tag
    size_t consumer_at  # its consumer tag, in the run's octets
    uint8_t consumer_size
    uint16_t channel
    bint redelivered


@cython.final
cdef class DeliveryRun:
    cdef Delivery* items
    cdef size_t size
    cdef size_t capacity
    cdef octet* consumers
    cdef size_t consumers_size
    cdef size_t consumers_capacity

    def __dealloc__(self):
        cdef size_t at
        for at in range(self.size):
            message_drop(self.items[at].message)
        free(self.items)
        free(self.consumers)

    def __len__(self):
        return self.size

    def __getitem__(self, Py_ssize_t position):
        cdef Delivery* item = &self.items[run_position(position, self.size)]
        return item.channel, self.consumer_tag(item), item.tag, item.redelivered != 0, <Message>item.message

    cdef inline bytes consumer_tag(self, Delivery* item):
        return copied(self.consumers + item.consumer_at, item.consumer_size)

    cdef inline bint same_consumer(self, Delivery* item, const octet* consumer, uint8_t size) noexcept:
        return item.consumer_size == size and memcmp(self.consumers + item.consumer_at, consumer, size) == 0

    cdef inline Delivery* add(self, Message message, const octet* routing, size_t routing_size, const octet* consumer,
                              uint8_t consumer_size) except NULL:
        # The caller fills in the rest.
        cdef Delivery* item
        if self.size == self.capacity:
            self.items = <Delivery*>grown(self.items, &self.capacity, sizeof(Delivery))
        item = &self.items[self.size]
        if self.size and same_bytes((<Message>(item - 1).message).routing, routing, routing_size):
            item.hashed = (item - 1).hashed
            message.routing = (<Message>(item - 1).message).routing
        else:
            item.hashed = hash_octets(routing, routing_size)
            message.routing = known_routing(routing, routing_size, item.hashed)
        item.consumer_size = consumer_size
        if self.size and self.same_consumer(item - 1, consumer, consumer_size):
            item.consumer_at = (item - 1).consumer_at
        else:
            item.consumer_at = self.keep_consumer(consumer, consumer_size)
        Py_INCREF(message)
        item.message = <PyObject*>message
        self.size += 1
        return item

    cdef size_t keep_consumer(self, const octet* consumer, uint8_t size) except? 0:
        cdef size_t at = self.consumers_size
        while at + size > self.consumers_capacity:
            self.consumers = <octet*>grown(self.consumers, &self.consumers_capacity, 1)
        memcpy(self.consumers + at, consumer, size)
        self.consumers_size = at + size
        return at
