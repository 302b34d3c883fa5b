# How much of all queues is in memory, and which messages leave it when that is too much; see plain/paging.py.

cdef object paging_list(Engine engine, int rank):
    if rank == RANK_LONG:
        return engine.long_queues
    return engine.short_queues if rank == RANK_SHORT else None


cdef int paging_rank(Engine engine, Queue queue, int rank) except -1:
    # Puts the queue at the end of the list of that rank.
    if queue.rank != RANK_NONE:
        del paging_list(engine, queue.rank)[queue]
    queue.rank = rank
    if rank != RANK_NONE:
        paging_list(engine, rank)[queue] = None
    return 0


cdef list paging_out(Engine engine, uint64_t bytes_max):
    cdef list pages = []
    cdef uint64_t size = 0
    cdef Queue queue
    cdef tuple evicted
    while engine.ready_bytes > engine.paging_bytes and engine.paging_bytes and size < bytes_max:
        queues = engine.long_queues or engine.short_queues
        if not queues:
            break
        queue = next(iter(queues))
        queues.move_to_end(queue)
        evicted = queue_evict(queue)
        if evicted is None:
            # The queue has enough messages, but not in one place; it is checked again after its next run.
            paging_rank(engine, queue, queue.rank - 1)
        else:
            pages.append(evicted)
            size += PyBytes_GET_SIZE(<bytes>evicted[1])
    return pages


cdef int paging_loaded(Page page, bytes data) except -1:
    cdef Queue queue = page.queue
    if page.count == 0:
        return 0
    assert page.wanted and page.data is None
    queue_load(queue, page, data)
    queue_weigh(queue)
    queue_watch_time(queue)
    if queue.ready.count:
        queue_activate(queue)
    return 0
