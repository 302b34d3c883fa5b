# Prefetches memory for a run of publishes. With many keys and queues in use, the data for one message is in distant
# memory, at the end of a chain of pointers: slot, plan, queue, turn, consumer, tag. Each message's chain is followed by
# one step while the messages before it are processed, so that the memory of a dozen messages is being fetched at once.

cdef enum:
    OUTLOOK_SIZE = 32  # a power of two, more than the farthest step
    STEP_SLOT = 20
    STEP_PLAN = 15
    STEP_QUEUE = 11
    STEP_TURN = 7
    STEP_CONSUMER = 4
    STEP_TAG = 2
    STEP_MESSAGE = 8
    STEP_BODY = 4
    # The same for the list of queues to run.
    STEP_NEXT_QUEUE = 12
    STEP_NEXT_ENTRIES = 9
    STEP_NEXT_MESSAGES = 6
    STEP_NEXT_BODIES = 3


cdef struct Outlook:
    RouteSlot* slots[OUTLOOK_SIZE]  # by the position in the run; free ones for unknown routings
    size_t reached  # the first position that has none yet
    PyObject* routes  # routes of the session at that time; may be gone
    uint64_t changed  # value of routes_changed at that time


cdef inline void outlook_begin(Outlook* outlook) noexcept:
    outlook.routes = NULL
    outlook.reached = outlook.changed = 0


cdef inline RouteSlot* outlook_turn_to(Outlook* outlook, Routes routes, PublishRun run, size_t at) noexcept:
    # The slot of the item's routing if it has a valid plan; else NULL.
    cdef Publish* item = &run.items[at]
    cdef RouteSlot* slot
    if outlook.changed != routes_changed or outlook.routes != <PyObject*>routes:
        outlook.changed = routes_changed
        outlook.routes = <PyObject*>routes
        outlook.reached = at
    if at + STEP_SLOT < run.size:
        fetch_line(&routes.slots[run.items[at + STEP_SLOT].hashed & routes.mask])
    while outlook.reached < run.size and outlook.reached <= at + STEP_PLAN:
        outlook_reach(outlook, routes, run)
    if at + STEP_QUEUE < outlook.reached:
        outlook_fetch(outlook, at)
    if at + STEP_MESSAGE < run.size:
        fetch_ahead(run.items[at + STEP_MESSAGE].message)
        fetch_ahead(<PyObject*>(<Message>run.items[at + STEP_BODY].message).body)
    slot = outlook.slots[at % OUTLOOK_SIZE]
    if slot.routing != NULL and not same_bytes(<bytes>slot.routing, run.routings + item.routing_at, item.routing_size):
        # Two routings have the same hash.
        slot = routes.slot_of(run.routings + item.routing_at, item.routing_size, item.hashed)
    return slot if slot.routing != NULL and (<Plan>slot.plan).valid else NULL


cdef inline void outlook_reach(Outlook* outlook, Routes routes, PublishRun run) noexcept:
    cdef RouteSlot* slot = routes.first_slot(run.items[outlook.reached].hashed)
    outlook.slots[outlook.reached % OUTLOOK_SIZE] = slot
    outlook.reached += 1
    if slot.routing != NULL:
        fetch_line(slot.plan)
        fetch_line(slot.routing)


cdef inline PyObject* outlook_queue(Outlook* outlook, size_t at) noexcept:
    # NULL if there are none, or many, or it is the queue of the message before: then it is in the cache already.
    cdef RouteSlot* slot = outlook.slots[at % OUTLOOK_SIZE]
    cdef RouteSlot* before = outlook.slots[(at - 1) % OUTLOOK_SIZE]
    if slot == before or slot.routing == NULL:
        return NULL
    if before.routing != NULL and (<Plan>before.plan).only == (<Plan>slot.plan).only:
        return NULL
    return (<Plan>slot.plan).only


cdef inline void outlook_fetch(Outlook* outlook, size_t at) noexcept:
    cdef PyObject* queue = outlook_queue(outlook, at + STEP_QUEUE)
    cdef Turn* turn
    if queue != NULL:
        fetch_lines(queue, &(<Queue>queue).deleted)
    queue = outlook_queue(outlook, at + STEP_TURN)
    if queue != NULL:
        fetch_line((<Queue>queue).rotation)
        if (<Queue>queue).ready.single.used:
            fetch_line(ring_at(&(<Queue>queue).ready.single, (<Queue>queue).ready.single.used))
    queue = outlook_queue(outlook, at + STEP_CONSUMER)
    if queue != NULL:
        turn = (<Queue>queue).rotation
        if turn != NULL and turn.ready.first != NULL:
            fetch_lines(turn.ready.first, &(<Consumer>turn.ready.first).after)
    queue = outlook_queue(outlook, at + STEP_TAG)
    if queue != NULL:
        turn = (<Queue>queue).rotation
        if turn != NULL and turn.ready.first != NULL:
            fetch_line(<PyObject*>(<Consumer>turn.ready.first).tag)


cdef inline Ring* outlook_ring(list queues, Py_ssize_t at) noexcept:
    # For a queue to run; NULL if there is nothing to prefetch. Long queues prefetch by themselves, see ring.pxi.
    cdef Ring* ring
    if at >= PyList_GET_SIZE(queues):
        return NULL
    ring = &(<Queue>PyList_GET_ITEM(queues, at)).ready.single
    return ring if ring.used else NULL


cdef inline void outlook_to_queues(list queues, Py_ssize_t at) noexcept:
    # While the queue at this position runs.
    cdef PyObject* queue
    cdef Ring* ring
    cdef size_t place
    if at + STEP_NEXT_QUEUE < PyList_GET_SIZE(queues):
        queue = PyList_GET_ITEM(queues, at + STEP_NEXT_QUEUE)
        fetch_lines(queue, &(<Queue>queue).deleted)
    ring = outlook_ring(queues, at + STEP_NEXT_ENTRIES)
    if ring != NULL:
        fetch_line((<Queue>PyList_GET_ITEM(queues, at + STEP_NEXT_ENTRIES)).rotation)
        for place in range(min(ring.used, <size_t>FETCH_MESSAGE_AHEAD)):
            fetch_line(ring_at(ring, place))
    ring = outlook_ring(queues, at + STEP_NEXT_MESSAGES)
    if ring != NULL:
        for place in range(min(ring.used, <size_t>FETCH_MESSAGE_AHEAD)):
            fetch_ahead(ring_at(ring, place).message)
    ring = outlook_ring(queues, at + STEP_NEXT_BODIES)
    if ring != NULL:
        for place in range(min(ring.used, <size_t>FETCH_MESSAGE_AHEAD)):
            if ring_at(ring, place).message != NULL:
                fetch_ahead(<PyObject*>(<Message>ring_at(ring, place).message).body)
