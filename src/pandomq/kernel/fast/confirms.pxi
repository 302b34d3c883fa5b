# When the publishes of a channel in confirm mode are confirmed; see plain/confirms.py for why.

cdef struct Step:
    uint64_t number  # confirm up to this number
    uint64_t index  # once this index is committed
    uint64_t batch  # and once everything that batches up to this one put into outlets has come out


cdef struct Confirms:
    uint64_t published
    uint64_t planned  # numbers up to this one are in steps or settled
    uint64_t settled  # numbers up to this one were confirmed or refused on the wire
    uint64_t last_index  # the latest entry that holds something of this channel
    uint64_t last_batch  # the latest batch in which it had something for outlets
    bint awaits_receipt  # this batch has publishes that await receipt
    uint64_t depends_from  # the first number that waits for this batch's entry; 0 if none does
    uint64_t held_from  # numbers from this one on wait for the next call of hold_confirms; 0 if none does
    Step* steps
    size_t steps_count
    size_t steps_capacity
    uint64_t* refused
    size_t refused_count
    size_t refused_capacity
    Early* early  # NULL for most


cdef void confirms_free(Confirms* confirms) noexcept:
    free(confirms.steps)
    free(confirms.refused)
    early_free(confirms.early)
    confirms.early = NULL
    confirms.steps = NULL
    confirms.refused = NULL
    confirms.steps_count = confirms.steps_capacity = confirms.refused_count = confirms.refused_capacity = 0


cdef int confirms_refuse(Channel channel) except -1:
    cdef Confirms* confirms = &channel.confirms
    if confirms.published <= confirms.planned:
        return 0
    if confirms.refused_count and confirms.refused[confirms.refused_count - 1] == confirms.published:
        return 0
    if confirms.refused_count == confirms.refused_capacity:
        confirms.refused = <uint64_t*>grown(confirms.refused, &confirms.refused_capacity, sizeof(uint64_t))
    confirms.refused[confirms.refused_count] = confirms.published
    confirms.refused_count += 1
    return early_needs_commit(early_of(channel), confirms.published) if channel.session.engine.replicated else 0


cdef int confirms_await_receipt(Channel channel) except -1:
    # The last publish so far is in an outlet.
    cdef Confirms* confirms = &channel.confirms
    if not confirms.depends_from:
        confirms.depends_from = confirms.published
    confirms.awaits_receipt = True
    return early_needs_commit(early_of(channel), confirms.published) if channel.session.engine.replicated else 0


cdef int confirms_choose(Channel channel, bint needs_commit) except -1:
    # The last counted publish is in the batch's entry, and several brokers keep the log.
    cdef Early* early = early_of(channel)
    cdef Engine engine = channel.session.engine
    if needs_commit:
        return early_needs_commit(early, channel.confirms.published)
    if channel.mode == C_CONFIRM and not early_barred(early, engine.commit_index):
        engine.prompt = True
    return 0


cdef int confirms_repeat(Channel channel) except -1:
    # The last publish so far took effect before, possibly in an entry that is not committed.
    if channel.session.engine.replicated:
        early_needs_commit(early_of(channel), channel.confirms.published)
    return channel.publish_waits()


cdef int confirms_sealed(Channel channel, uint64_t index) except -1:
    # The batch ended; `index` is its entry's index, or the last one before it if it has none.
    cdef Confirms* confirms = &channel.confirms
    cdef Engine engine = channel.session.engine
    cdef uint64_t planned = confirms.planned
    cdef bint held = confirms_is_held(confirms, planned + 1)
    if confirms.depends_from:
        confirms_plan(channel, confirms.depends_from - 1)
        confirms.depends_from = 0
        if confirms.awaits_receipt:
            confirms.awaits_receipt = False
            confirms.last_batch = engine.batch
            engine.outlets_waiting.append((engine.batch, channel))
        if index > confirms.last_index:
            confirms.last_index = index
            if index > engine.commit_index:
                engine.confirms_waiting.append((index, channel))
    confirms_plan(channel, confirms.published)
    if engine.replicated and early_sealed(early_of(channel), max(planned, confirms.settled), confirms.published,
                                          index, engine.commit_index, held):
        if index <= engine.received_index:
            return confirms_received(channel, engine.received_index)
        engine.receipts_waiting.append((index, channel))
    return 0


cdef int confirms_plan(Channel channel, uint64_t number) except -1:
    # Numbers up to this one may go out with the latest entry that the channel depends on.
    cdef Confirms* confirms = &channel.confirms
    cdef Step* last
    if number <= confirms.planned:
        return 0
    confirms.planned = number
    if confirms.steps_count == 0:
        if (not confirms_is_held(confirms, number) and confirms.last_index <= channel.session.engine.commit_index
                and confirms.last_batch <= channel.session.engine.outlets_batch):
            return confirms_settle(channel, number)
    else:
        last = &confirms.steps[confirms.steps_count - 1]
        if last.index == confirms.last_index and last.batch == confirms.last_batch:
            last.number = number
            return 0
    if confirms.steps_count == confirms.steps_capacity:
        confirms.steps = <Step*>grown(confirms.steps, &confirms.steps_capacity, sizeof(Step))
    confirms.steps[confirms.steps_count] = Step(number, confirms.last_index, confirms.last_batch)
    confirms.steps_count += 1
    return 0


cdef int confirms_committed(Channel channel, uint64_t index) except -1:
    cdef Confirms* confirms = &channel.confirms
    cdef uint64_t batch = channel.session.engine.outlets_batch
    cdef size_t passed = 0
    cdef uint64_t number = 0
    while (passed < confirms.steps_count and confirms.steps[passed].index <= index
            and confirms.steps[passed].batch <= batch):
        if confirms_is_held(confirms, confirms.steps[passed].number):
            number = confirms.held_from - 1
            break
        number = confirms.steps[passed].number
        passed += 1
    if passed:
        confirms.steps_count -= passed
        memmove(confirms.steps, confirms.steps + passed, confirms.steps_count * sizeof(Step))
        if confirms.steps_count == 0:
            free(confirms.steps)
            confirms.steps = NULL
            confirms.steps_capacity = 0
    return confirms_settle(channel, number) if number > confirms.settled else 0


cdef inline bint confirms_is_held(Confirms* confirms, uint64_t number) noexcept:
    return confirms.held_from and confirms.held_from <= number


cdef int confirms_received(Channel channel, uint64_t index) except -1:
    # Enough brokers have the entries up to this one in memory.
    cdef Confirms* confirms = &channel.confirms
    cdef Early* early = confirms.early
    cdef size_t passed = 0
    cdef uint64_t first, last, number
    while passed < early.waiting_count - early.unsealed_count and early.waiting[passed].index <= index:
        first = max(early.waiting[passed].first, confirms.settled + 1)
        last = early.waiting[passed].last
        passed += 1
        if last < first:
            continue
        if first == confirms.settled + 1:
            confirms_acknowledge(channel, confirms.settled, last)
            confirms_settled_up_to(channel, last)
            continue
        channel.session.engine.confirmed += last - first + 1
        if channel.traced is not None:
            trace_confirmed(channel, first, last, True)
        for number in range(first, last + 1):
            confirms_write(channel, C_ACK, number, False)
        early_went_ahead(early, first, last)
    if passed:
        early.waiting_count -= passed
        memmove(early.waiting, early.waiting + passed, early.waiting_count * sizeof(Range))
    return 0


cdef int confirms_settle(Channel channel, uint64_t number) except -1:
    cdef Confirms* confirms = &channel.confirms
    cdef uint64_t confirmed = confirms.settled
    cdef size_t passed = 0
    while passed < confirms.refused_count and confirms.refused[passed] <= number:
        confirms_acknowledge(channel, confirmed, confirms.refused[passed] - 1)
        confirmed = confirms.refused[passed]
        if channel.traced is not None:
            trace_confirmed(channel, confirmed, confirmed, False)
        confirms_write(channel, C_NACK, confirmed, False)
        passed += 1
    if passed:
        confirms.refused_count -= passed
        memmove(confirms.refused, confirms.refused + passed, confirms.refused_count * sizeof(uint64_t))
    confirms_acknowledge(channel, confirmed, number)
    confirms_settled_up_to(channel, number)
    return 0


cdef void confirms_settled_up_to(Channel channel, uint64_t number) noexcept:
    cdef Confirms* confirms = &channel.confirms
    cdef size_t passed = 0
    confirms.settled = number
    if confirms.early == NULL:
        return
    confirms.settled = early_settled(confirms.early, number)
    while passed < confirms.steps_count and confirms.steps[passed].number <= confirms.settled:
        passed += 1
    if passed:
        confirms.steps_count -= passed
        memmove(confirms.steps, confirms.steps + passed, confirms.steps_count * sizeof(Step))


cdef inline int confirms_acknowledge(Channel channel, uint64_t after, uint64_t number) except -1:
    cdef uint64_t count, last = number
    if number > after:
        count = number - after
        if channel.confirms.early != NULL:
            count = early_left_of(channel.confirms.early, after, &last)
        if count:
            channel.session.engine.confirmed += count
            if channel.traced is not None:
                trace_confirmed(channel, after + 1, number, True)
            confirms_write(channel, C_ACK, last, count > 1)
    return 0


cdef int confirms_write(Channel channel, uint16_t method_id, uint64_t number, bint multiple) except -1:
    cdef octet frame[21]
    if not channel.open or channel.mode != C_CONFIRM:
        return 0
    store_settlement(frame, channel.number, method_id, number, multiple)
    return channel.session.put(frame, sizeof(frame))


cdef inline void store_settlement(octet* p, uint16_t channel, uint16_t method_id, uint64_t tag, uint8_t bits) noexcept:
    p = store32(store16(store8(p, C_METHOD), channel), 13)
    p = store64(store16(store16(p, C_BASIC), method_id), tag)
    store8(store8(p, bits), C_FRAME_END)
