# Which publishes of a channel are confirmed before earlier ones; see plain/early.py for why.

cdef struct Range:
    uint64_t first
    uint64_t last
    uint64_t index  # the entry that has to be received; 0 in this batch


cdef struct Early:
    uint64_t classified  # numbers of this batch up to this one are in ranges, or need the commit
    uint64_t barrier_index  # publishes of later batches need the commit until this index is committed
    bint barred  # the following publishes of this batch need it, too
    Range* waiting  # the ranges of this batch are the last ones
    size_t waiting_count
    size_t waiting_capacity
    size_t unsealed_count
    Range* ahead  # confirmed, while an earlier one is not; in order
    size_t ahead_count
    size_t ahead_capacity


cdef void early_free(Early* early) noexcept:
    if early != NULL:
        free(early.waiting)
        free(early.ahead)
        free(early)


cdef Early* early_of(Channel channel) except NULL:
    # Most channels never have one.
    if channel.confirms.early == NULL:
        channel.confirms.early = <Early*>calloc(1, sizeof(Early))
        if channel.confirms.early == NULL:
            raise MemoryError
    return channel.confirms.early


cdef bint early_barred(Early* early, uint64_t commit_index) noexcept:
    return early.barred or early.barrier_index > commit_index


cdef int early_needs_commit(Early* early, uint64_t number) except -1:
    # The last publish so far needs the commit.
    cdef Range* last
    if early.unsealed_count:
        last = &early.waiting[early.waiting_count - 1]
        if last.last == number:
            last.last -= 1
            if last.last < last.first:
                early.waiting_count -= 1
                early.unsealed_count -= 1
    if number:
        early_classify(early, number - 1)
        early.classified = max(early.classified, number)
    return 0


cdef int early_bar(Early* early, uint64_t published) except -1:
    early_classify(early, published)
    early.barred = True
    return 0


cdef int early_classify(Early* early, uint64_t number) except -1:
    if number <= early.classified:
        return 0
    if not early.barred:
        if early.waiting_count == early.waiting_capacity:
            early.waiting = <Range*>grown(early.waiting, &early.waiting_capacity, sizeof(Range))
        early.waiting[early.waiting_count] = Range(early.classified + 1, number, 0)
        early.waiting_count += 1
        early.unsealed_count += 1
    early.classified = number
    return 0


cdef bint early_sealed(Early* early, uint64_t after, uint64_t published, uint64_t index,
                       uint64_t commit_index, bint held) except -1:
    # The batch's numbers that are not settled are those after `after`; True if some wait for the receipt. `held`: none
    # of them may go out yet.
    cdef size_t at, first, kept
    early_classify(early, published)
    first = kept = early.waiting_count - early.unsealed_count
    if early.barrier_index <= commit_index and not held:
        for at in range(first, early.waiting_count):
            if early.waiting[at].last > after:
                early.waiting[kept] = Range(max(early.waiting[at].first, after + 1), early.waiting[at].last, index)
                kept += 1
    early.waiting_count = kept
    early.unsealed_count = 0
    if early.barred:
        early.barred = False
        early.barrier_index = index
    return kept > first


cdef int early_went_ahead(Early* early, uint64_t first, uint64_t last) except -1:
    if early.ahead_count and early.ahead[early.ahead_count - 1].last == first - 1:
        early.ahead[early.ahead_count - 1].last = last
        return 0
    if early.ahead_count == early.ahead_capacity:
        early.ahead = <Range*>grown(early.ahead, &early.ahead_capacity, sizeof(Range))
    early.ahead[early.ahead_count] = Range(first, last, 0)
    early.ahead_count += 1
    return 0


cdef uint64_t early_left_of(Early* early, uint64_t after, uint64_t* number) noexcept:
    # How many of the numbers after `after`, up to `number`, are not confirmed; `number` becomes the last of them.
    cdef uint64_t count = 0
    cdef uint64_t last = 0
    cdef uint64_t end
    cdef size_t at
    for at in range(early.ahead_count + 1):
        end = min(early.ahead[at].first - 1, number[0]) if at < early.ahead_count else number[0]
        if end > after:
            count += end - after
            last = end
        if at < early.ahead_count:
            after = max(after, early.ahead[at].last)
    number[0] = last
    return count


cdef uint64_t early_settled(Early* early, uint64_t number) noexcept:
    # Numbers up to this one are confirmed; returns the number up to which all are.
    cdef size_t passed = 0
    while passed < early.ahead_count and early.ahead[passed].first <= number + 1:
        number = max(number, early.ahead[passed].last)
        passed += 1
    if passed:
        early.ahead_count -= passed
        memmove(early.ahead, early.ahead + passed, early.ahead_count * sizeof(Range))
    return number


cdef uint64_t early_ahead(Early* early) noexcept:
    # Number of publishes that are confirmed while an earlier one is not.
    cdef uint64_t count = 0
    cdef size_t at
    if early != NULL:
        for at in range(early.ahead_count):
            count += early.ahead[at].last - early.ahead[at].first + 1
    return count
