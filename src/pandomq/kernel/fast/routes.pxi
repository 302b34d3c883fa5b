# Cached decisions of the broker: where messages of one exchange and key go.
#
# Routes is an open-addressing hash table in C. While a run of publishes is processed, the memory from a routing to its
# queue, and what an insertion there needs, is prefetched: with many keys or queues in use none of it is in the
# processor's cache.

cdef enum:
    ROUTE_SLOTS_MIN = 16


cdef struct RouteSlot:
    uint64_t hashed
    PyObject* routing  # owned; NULL if the slot is free
    PyObject* plan  # in `plans` of the table, which owns it and exposes it to the garbage collector
    size_t position  # there


# Incremented by each change that may give a RouteSlot or a Plan another meaning: pointers to them are valid until then.
cdef uint64_t routes_changed = 0


@cython.final
cdef class Plan:
    cdef readonly tuple queues
    cdef PyObject* only  # the queue, if there is exactly one
    cdef readonly bint valid

    def __init__(self, queues):
        self.queues = queue_tuple(queues)
        self.only = PyTuple_GET_ITEM(self.queues, 0) if PyTuple_GET_SIZE(self.queues) == 1 else NULL
        self.valid = True

    def withdraw(self):
        global routes_changed
        routes_changed += 1
        # A plan may be cached for long: the cache must not keep its queues alive.
        self.valid = False
        self.only = NULL
        self.queues = ()


@cython.final
cdef class Routes:
    cdef size_t capacity
    cdef RouteSlot* slots
    cdef size_t mask
    cdef list plans

    def __init__(self, size_t capacity):
        self.capacity = capacity
        self.plans = []
        if self.slots == NULL:
            self.make_slots(ROUTE_SLOTS_MIN)

    def __dealloc__(self):
        free_route_slots(self.slots, self.mask + 1)

    def __len__(self):
        return PyList_GET_SIZE(self.plans)

    def put(self, bytes routing not None, Plan plan not None):
        global routes_changed
        cdef const octet* octets = octets_of(routing)
        cdef size_t size = PyBytes_GET_SIZE(routing)
        cdef uint64_t hashed = hash_octets(octets, size)
        cdef RouteSlot* slot = self.slot_of(octets, size, hashed)
        routes_changed += 1
        if slot.routing != NULL:
            self.plans[slot.position] = plan
            slot.plan = <PyObject*>plan
            return
        if <size_t>PyList_GET_SIZE(self.plans) >= self.capacity:
            self.clear()
        elif <size_t>PyList_GET_SIZE(self.plans) * 2 > self.mask:
            self.grow()
        self.plans.append(plan)
        Py_INCREF(routing)
        self.slot_of(octets, size, hashed)[0] = RouteSlot(hashed, <PyObject*>routing, <PyObject*>plan,
                                                          PyList_GET_SIZE(self.plans) - 1)

    def find(self, bytes routing not None):
        cdef const octet* octets = octets_of(routing)
        cdef size_t size = PyBytes_GET_SIZE(routing)
        cdef RouteSlot* slot = self.slot_of(octets, size, hash_octets(octets, size))
        return <Plan>slot.plan if slot.routing != NULL and (<Plan>slot.plan).valid else None

    def clear(self):
        cdef RouteSlot* before = self.slots
        cdef size_t count = self.mask + 1
        self.make_slots(ROUTE_SLOTS_MIN)
        self.plans = []
        free_route_slots(before, count)

    cdef inline RouteSlot* slot_of(self, const octet* routing, size_t size, uint64_t hashed) noexcept:
        # The slot of the routing, or the one where it would be put.
        cdef RouteSlot* slot = self.first_slot(hashed)
        while slot.routing != NULL and not (slot.hashed == hashed and same_bytes(<bytes>slot.routing, routing, size)):
            slot = slot + 1 if slot != &self.slots[self.mask] else self.slots
        return slot

    cdef inline RouteSlot* first_slot(self, uint64_t hashed) noexcept:
        # The first slot that has this hash, or a free one.
        cdef RouteSlot* slot = &self.slots[hashed & self.mask]
        while slot.hashed != hashed and slot.routing != NULL:
            slot = slot + 1 if slot != &self.slots[self.mask] else self.slots
        return slot

    cdef inline RouteSlot* free_slot(self, uint64_t hashed) noexcept:
        cdef size_t at = hashed & self.mask
        while self.slots[at].routing != NULL:
            at = (at + 1) & self.mask
        return &self.slots[at]

    cdef int make_slots(self, size_t count) except -1:
        cdef RouteSlot* slots = <RouteSlot*>calloc(count, sizeof(RouteSlot))
        if slots == NULL:
            raise MemoryError
        self.slots = slots
        self.mask = count - 1
        return 0

    cdef int grow(self) except -1:
        cdef RouteSlot* before = self.slots
        cdef size_t count = self.mask + 1
        cdef size_t at
        self.make_slots(2 * count)
        for at in range(count):
            if before[at].routing != NULL:
                self.free_slot(before[at].hashed)[0] = before[at]
        free(before)
        return 0


cdef void free_route_slots(RouteSlot* slots, size_t count) noexcept:
    global routes_changed
    cdef size_t at
    routes_changed += 1
    if slots != NULL:
        for at in range(count):
            Py_XDECREF(slots[at].routing)
        free(slots)


cdef tuple queue_tuple(queues):
    # Values from Python are checked once, here.
    cdef tuple checked = queues if type(queues) is tuple else tuple(queues)
    for queue in checked:
        if type(queue) is not Queue:
            raise TypeError(f"a queue is wanted, not {queue!r}")
    return checked
