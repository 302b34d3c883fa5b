# The division of a queue between memory and pages; plain/queue_pages.py defines which queues are long.

cdef enum:
    RANK_NONE = 0
    RANK_SHORT = 1
    RANK_LONG = 2


cdef int queue_weigh(Queue queue) except -1:
    # Reports to the engine how much of this queue is in memory, and whether that is much.
    cdef Engine engine = queue.engine
    cdef size_t present = queue.ready.count - queue.ready.paged_count
    cdef uint64_t weight
    cdef int rank = RANK_NONE
    if engine.paging_bytes == 0 and queue.weighed_bytes == 0:
        return 0
    weight = queue.ready.held_bytes + present * C_MESSAGE_OVERHEAD_BYTES
    engine.ready_bytes += weight - queue.weighed_bytes
    queue.weighed_bytes = weight
    if not queue.withdrawable:
        if (present >= (PAGES_KEPT + 1) * engine.page_messages
                or queue.ready.held_bytes >= (PAGES_KEPT + 1) * engine.page_bytes):
            rank = RANK_LONG
        elif (present * SHORT_PARTS >= engine.page_messages
                or queue.ready.held_bytes * SHORT_PARTS >= engine.page_bytes):
            rank = RANK_SHORT if present else RANK_NONE
    if rank != queue.rank:
        engine.rank_queue(queue, rank)
    return 0


# --- out of memory

cdef tuple queue_evict(Queue queue):
    # Takes one page out of memory, if there is enough for the queue's rank: the lowest priority first, and of that
    # first the tail, then the end of the head. Returns the page and its bytes, or None.
    cdef bint long = queue.rank == RANK_LONG
    cdef size_t of = 1 if long else SHORT_PARTS
    cdef Ring* head
    cdef Ring* tail
    cdef int number
    ready_settle(&queue.ready)
    for number in range(queue.ready.priority_max + 1):
        head = ready_ring(&queue.ready, number)
        if head.level != NULL:
            tail = &(<PagedLevel>head.level).tail
            if ring_gives_page(tail, 1, of, queue.engine):
                return queue_evict_from(queue, number, tail, True)
        if ring_gives_page(head, 1 + (PAGES_KEPT if long else 0), of, queue.engine):
            if head.level == NULL or not (<PagedLevel>head.level).is_reading():
                return queue_evict_from(queue, number, head, False)
    return None


cdef inline void fetch_message(Ring* ring, size_t at) noexcept:
    cdef PyObject* message = ring_at(ring, at).message
    if message != NULL:
        fetch_ahead(message)


cdef tuple queue_evict_from(Queue queue, int number, Ring* ring, bint from_front):
    cdef Engine engine = queue.engine
    cdef size_t taken = 0  # slots
    cdef size_t start, end, at
    cdef size_t size_max = PAGE_START_SIZE
    cdef uint64_t held_bytes = 0
    cdef uint64_t begun = 0  # the first sequence
    cdef uint64_t term = 0  # the term of all of them
    cdef uint32_t count = 0
    cdef Entry* entry
    cdef Page page
    cdef bytes data
    while taken < ring.used and count < engine.page_messages and held_bytes < engine.page_bytes:
        entry = ring_at(ring, taken if from_front else ring.used - 1 - taken)
        if taken + FETCH_MESSAGE_AHEAD < ring.used:
            fetch_message(ring, taken + FETCH_MESSAGE_AHEAD if from_front else ring.used - 1 - taken - FETCH_MESSAGE_AHEAD)
        if entry.message != NULL:
            if count == 0:
                begun = entry.sequence
                term = entry.term
            elif entry.term != term or (
                entry.sequence - begun if from_front else begun - entry.sequence
            ) > OFFSET_MAX:
                break
            count += 1
            held_bytes += (<Message>entry.message).held_bytes
            size_max += PAGE_MESSAGE_SIZE_MAX + PyBytes_GET_SIZE((<Message>entry.message).routing)
        taken += 1
    start = 0 if from_front else ring.used - taken
    end = start + taken
    data = page_encode(ring, start, end, count, size_max + held_bytes)
    page = new_page(queue, page_layout(ring, start, end, count, number), None)
    page.term = term
    if queue.last_values is not None:
        page.keys = queue_keys(queue, ring, start, end)
    queue_level(queue, number).add_page(page)
    for at in range(start, end):
        entry = ring_at(ring, at)
        if entry.message != NULL:
            queue_let_go(queue, entry)
    ring_cut(ring, start, end, count, held_bytes)
    queue.ready.held_bytes -= held_bytes
    queue.ready.paged_count += count
    queue_weigh(queue)
    return page, data


cdef list queue_keys(Queue queue, Ring* ring, size_t start, size_t end):
    cdef list keys = []
    cdef size_t at
    for at in range(start, end):
        if ring_at(ring, at).message != NULL:
            keys.append(queue.last_values.key_of(<Message>ring_at(ring, at).message))
    return keys


# --- into memory

cdef int queue_load(Queue queue, Page page, bytes data) except -1:
    # Takes the bytes of a page. The page goes into the head if it is the first, with the loaded pages after it that
    # waited for it.
    cdef PagedLevel level = queue_level(queue, page.level)
    if level.first_page() is not page:
        page_verify(page, data)
        page.data = data
        return 0
    queue_load_first(queue, level, page, data)
    return queue_load_waiting(queue, level)


cdef int queue_load_waiting(Queue queue, PagedLevel level) except -1:
    # Pages that are loaded while an earlier one is not.
    cdef Page page
    cdef bytes data
    while PyList_GET_SIZE(level.pages):
        page = level.first_page()
        if page.data is None:
            break
        data, page.data = page.data, None
        queue_load_first(queue, level, page, data)
    return 0


cdef int queue_load_first(Queue queue, PagedLevel level, Page page, bytes data) except -1:
    cdef Engine engine = queue.engine
    cdef uint64_t held_bytes
    page_decode(page, data, level.head, &held_bytes)
    engine.held_messages += page.count
    engine.held_bytes += held_bytes
    queue.ready.held_bytes += held_bytes
    queue.ready.paged_count -= page.count
    level.pages.pop(0)
    level.settle()
    return queue_free(queue, page)


cdef int queue_want_head(Queue queue) except -1:
    # A consumer waits for the next message, which is in a page.
    return (<PagedLevel>ready_ring(&queue.ready, ready_top(&queue.ready)).level).read_ahead()


cdef inline int64_t queue_head_deadline_ms(Queue queue) noexcept:
    # For the next message, which is in a page.
    if queue.ready.with_deadline == 0:
        return NEVER
    return (<PagedLevel>ready_ring(&queue.ready, ready_top(&queue.ready)).level).next_deadline_ms()


cdef inline int queue_free(Queue queue, Page page) except -1:
    # The page is gone for good.
    page.count = 0
    page.size_bytes = 0
    queue.engine.freed.append(page)
    return 0


cdef Page queue_reinstate_page(Queue queue, bytes layout, bytes state, object owner):
    cdef Page page = new_page(queue, layout, owner)
    cdef PagedLevel level
    cdef uint32_t at
    page.take_state(state)
    if (page.keys is None) != (queue.last_values is None) or queue.withdrawable:
        raise ValueError("not a page of this queue")
    if page.level > queue.ready.priority_max or queue.ready.returned_count or queue_has_present(queue, page.level):
        raise ValueError("a page has no place here, or comes after messages")
    level = queue_level(queue, page.level)
    level.add_page(page)
    ready_mark(&queue.ready, page.level)
    queue.ready.count += page.count
    queue.ready.bytes += page.size_bytes
    queue.ready.with_deadline += page.deadline_count
    queue.ready.paged_count += page.count
    queue.next_sequence = max(queue.next_sequence, page.last() + 1)
    if page.keys is not None:
        for at in range(page.slots):
            if not page.is_gone(at):
                queue_supersede(queue, page.keys[at], page.sequence(at), False)
    queue_watch_time(queue)
    queue_activate(queue)
    return page


cdef bint queue_has_present(Queue queue, int number) noexcept:
    # Whether messages of this priority are in memory.
    cdef Ring* head
    if queue.ready.count == 0 or (queue.ready.priority_max and queue.ready.rings == NULL):
        return False
    head = ready_ring(&queue.ready, number)
    if head.used:
        return True
    return head.level != NULL and (
        (<PagedLevel>head.level).strays.used > 0 or (<PagedLevel>head.level).tail.used > 0
    )


# --- what there is

cdef list queue_list_pages(Queue queue):
    cdef list pages = []
    cdef int number
    ready_settle(&queue.ready)
    if queue.ready.paged_count:
        for number in range(queue.ready.priority_max, -1, -1):
            if ready_ring(&queue.ready, number).level != NULL:
                pages += (<PagedLevel>ready_ring(&queue.ready, number).level).pages
    return pages


cdef list queue_list_messages(Queue queue):
    # Messages in memory, in the form of Queue.snapshot.
    cdef list rows = []
    cdef Ring* ring
    cdef int number
    ready_settle(&queue.ready)
    if queue.ready.count == 0:
        return rows
    for number in range(queue.ready.priority_max, -1, -1):
        ring = ready_ring(&queue.ready, number)
        ring_list(ring, rows)
        if ring.level != NULL:
            ring_list(&(<PagedLevel>ring.level).strays, rows)
            ring_list(&(<PagedLevel>ring.level).tail, rows)
    return rows
