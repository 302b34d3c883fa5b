# How messages leave a queue from within its pages, by the index that is in memory.

cdef inline int queue_log_paged(Queue queue, Page page, uint32_t position) except -1:
    queue_left_unseen(queue, page.is_kept(position))
    if queue.logged and page.is_kept(position) and not queue.deleted:
        queue.engine.log_dequeue(queue, page.sequence(position))
    return 0


cdef inline int queue_forget_paged(Queue queue, Page page, uint32_t position) except -1:
    if page.keys is not None and queue.last_values is not None:
        queue.last_values.leave(page.keys[position], page.sequence(position))
    return 0


cdef int queue_remove_paged(Queue queue, PagedLevel level, Page page, uint32_t position) except -1:
    # The message is no longer ready. Returns 1 if its page is gone with it: then, when all are removed,
    # queue_pages_went must follow.
    cdef Ready* ready = &queue.ready
    ready.count -= 1
    ready.paged_count -= 1
    ready.bytes -= page.size(position)
    ready.with_deadline -= page.has_deadline(position)
    page.remove(position)
    if page.count == 0:
        level.pages.remove(page)
        level.settle()
        ready_unmark_empty(ready, level.number, level.head)
        queue_free(queue, page)
        return 1
    return 0


cdef int queue_pages_went(Queue queue) except -1:
    # The queue may have waited for these pages: then it waits for the next ones, which may be loaded already.
    cdef PagedLevel level
    cdef Ring* head
    cdef int number
    if queue.ready.count:
        for number in range(queue.ready.priority_max, -1, -1):
            head = ready_ring(&queue.ready, number)
            if head.level != NULL:
                level = <PagedLevel>head.level
                queue_load_waiting(queue, level)
        queue_activate(queue)
    return 0


cdef int queue_drop_range(Queue queue, uint64_t sequence_first, uint64_t count) except -1:
    # Ready messages of these sequences leave, unlogged.
    cdef Ready* ready = &queue.ready
    cdef Ring* head
    cdef PagedLevel level
    cdef int number
    cdef bint went = False
    ready_settle(ready)
    if ready.count == 0:
        return 0
    for number in range(ready.priority_max, -1, -1):
        head = ready_ring(ready, number)
        queue_drop_from(queue, head, sequence_first, count)
        if head.level != NULL:
            level = <PagedLevel>head.level
            queue_drop_from(queue, &level.strays, sequence_first, count)
            queue_drop_from(queue, &level.tail, sequence_first, count)
            went |= queue_drop_from_pages(queue, level, sequence_first, count)
        ready_unmark_empty(ready, number, head)
    return queue_pages_went(queue) if went else 0


cdef int queue_drop_from(Queue queue, Ring* ring, uint64_t sequence_first, uint64_t count) except -1:
    cdef size_t at
    cdef Entry* slot
    cdef Entry entry
    cdef bint found = False
    if ring.used == 0:
        return 0
    for at in range(ring_find(ring, sequence_first), ring.used):
        slot = ring_at(ring, at)
        if slot.sequence - sequence_first >= count:
            break
        if slot.message != NULL:
            entry = slot[0]
            ring_make_hole(ring, slot)
            ready_uncount(&queue.ready, &entry)
            queue_forget(queue, &entry)
            found = True
    if found:
        ring_close_holes(ring)
    return 0


cdef int queue_drop_from_pages(Queue queue, PagedLevel level, uint64_t sequence_first, uint64_t count) except -1:
    # 1 if a page went.
    cdef Page page
    cdef uint32_t at
    cdef uint64_t next_sequence
    cdef bint went = False
    while True:
        page = level.find_page(sequence_first)
        if page is None:
            return went
        # The page may go with the last one, and all pages with it.
        next_sequence = page.last() + 1
        for at in range(page.find(sequence_first), page.slots):
            if page.sequence(at) - sequence_first >= count:
                return went
            if not page.is_gone(at):
                queue_forget_paged(queue, page, at)
                went |= queue_remove_paged(queue, level, page, at)
        if next_sequence - sequence_first >= count:
            return went
        count -= next_sequence - sequence_first
        sequence_first = next_sequence


cdef size_t queue_clear(Queue queue, bint log) except? <size_t>-1:
    # All ready messages leave, in the order of delivery. Returns their number.
    cdef Ready* ready = &queue.ready
    cdef size_t count = ready.count
    cdef Ring* head
    cdef PagedLevel level
    cdef Page page
    cdef list freed = []
    cdef int number
    ready_settle(ready)
    # A queue with priorities has no rings before its first message.
    for number in range(ready.priority_max if count else -1, -1, -1):
        head = ready_ring(ready, number)
        queue_clear_below(queue, head, <uint64_t>-1, log)
        if head.level != NULL:
            level = <PagedLevel>head.level
            queue_clear_level(queue, level, log)
            freed += level.pages
            head.level = NULL
    for page in freed:
        queue_free(queue, page)
    queue.paged_levels = None
    ready.count = ready.paged_count = ready.with_deadline = 0
    ready.bytes = ready.held_bytes = 0
    ready.filled[0] = ready.filled[1] = ready.filled[2] = ready.filled[3] = 0
    queue_weigh(queue)
    return count


cdef int queue_clear_level(Queue queue, PagedLevel level, bint log) except -1:
    cdef Page page
    cdef uint32_t at
    for page in level.pages:
        for at in range(page.slots):
            if page.is_gone(at):
                continue
            if level.strays.used:
                queue_clear_below(queue, &level.strays, page.sequence(at), log)
            if log:
                queue_log_paged(queue, page, at)
            queue_forget_paged(queue, page, at)
    queue_clear_below(queue, &level.strays, <uint64_t>-1, log)
    return queue_clear_below(queue, &level.tail, <uint64_t>-1, log)


cdef int queue_clear_below(Queue queue, Ring* ring, uint64_t sequence, bint log) except -1:
    # The entries below this sequence leave.
    cdef Entry entry
    while ring.used and ring_at(ring, 0).sequence < sequence:
        ring_pop_first(ring, &entry)
        if log:
            queue_left_unseen(queue, (<Message>entry.message).kept)
            queue_log(queue, &entry)
        queue_forget(queue, &entry)
    return 0


cdef int queue_supersede(Queue queue, bytes key, uint64_t sequence, bint log) except -1:
    # In a last-value queue: a message arrived, and the message that it makes out of date leaves.
    cdef uint64_t outdated
    cdef Entry old
    cdef PagedLevel level
    cdef Page page
    cdef uint32_t at
    if not queue.last_values.arrive(key, sequence, &outdated):
        return 0
    # It is not the newest of its key, so there is no key to forget.
    if ready_remove(&queue.ready, outdated, &old):
        queue.dropped += 1
        if log:
            queue_left_unseen(queue, (<Message>old.message).kept)
            queue_log(queue, &old)
        return queue_let_go(queue, &old)
    if queue.ready.paged_count == 0:
        return 0
    for level in queue.paged_levels:
        page = level.find_page(outdated)
        if page is None:
            continue
        at = page.find(outdated)
        if at < page.slots and page.sequence(at) == outdated and not page.is_gone(at):
            queue.dropped += 1
            if log:
                queue_log_paged(queue, page, at)
            return queue_pages_went(queue) if queue_remove_paged(queue, level, page, at) else 0
    return 0


cdef Queue engine_nowhere(Engine engine):
    # The places of unacked messages that were settled by place. Most engines never need it.
    if engine.nowhere is None:
        engine.nowhere = Queue(engine, None, 0, False)
        engine.nowhere.delete()
    return engine.nowhere


cdef int queue_settle_ready(Queue queue, uint64_t sequence, uint64_t term, int method_id) except -1:
    # See Channel.settle_place.
    cdef Entry entry
    cdef Entry* there = ready_peek(&queue.ready, sequence)
    if there == NULL:
        return queue_settle_paged(queue, sequence, term, method_id)
    if there.term != term:
        return C_ABSENT
    ready_remove(&queue.ready, sequence, &entry)
    if method_id == C_ACK:
        queue.engine.acked += 1
        queue.acked += 1
        queue_gone(queue, &entry)
    else:
        queue_die(queue, &entry, C_REJECTED)
    queue_watch_time(queue)
    return C_SETTLED


cdef int queue_settle_paged(Queue queue, uint64_t sequence, uint64_t term, int method_id) except -1:
    cdef PagedLevel level
    cdef Page page
    cdef uint32_t at
    for level in queue.paged_levels or ():
        page = level.find_page(sequence)
        if page is None:
            continue
        at = page.find(sequence)
        if at == page.slots or page.sequence(at) != sequence or page.is_gone(at):
            continue
        if page.term and page.term != term:
            return C_ABSENT
        if page.term == 0 or method_id != C_ACK:
            return C_UNKNOWN
        queue.engine.acked += 1
        queue.acked += 1
        queue_log_paged(queue, page, at)
        queue_forget_paged(queue, page, at)
        if queue_remove_paged(queue, level, page, at):
            queue_pages_went(queue)
        queue_watch_time(queue)
        return C_SETTLED
    return C_ABSENT


cdef int queue_suspect(Queue queue) except -1:
    # Any ready message may have been delivered before.
    cdef PagedLevel level
    cdef Page page
    cdef int number
    ready_settle(&queue.ready)
    if queue.ready.count == 0:
        return 0
    for number in range(queue.ready.priority_max + 1):
        ring_suspect(ready_ring(&queue.ready, number))
    for level in queue.paged_levels or ():
        ring_suspect(&level.strays)
        ring_suspect(&level.tail)
        for page in level.pages:
            page.suspect = True
    return 0
