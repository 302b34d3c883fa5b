# State of queues and streams that waits for the log: a queue delivers nothing more after a message left it unseen until
# the log has recorded that, and readers of a stream get only committed messages. Confirms go out when their entry is
# committed, or, if they need no more, received.

cdef int seal_queues(Engine engine) except -1:
    cdef Queue queue
    cdef list queues = engine.unsealed_queues
    engine.unsealed_queues = []
    for queue in queues:
        queue.unseen_index = engine.sealed_index
        engine.queues_waiting.append((engine.sealed_index, queue))
    return 0


cdef int commit_queues(Engine engine) except -1:
    while engine.queues_waiting and engine.queues_waiting[0][0] <= engine.commit_index:
        queue_activate_if_ready(engine.queues_waiting.popleft()[1])
    return 0


cdef int seal_streams(Engine engine) except -1:
    cdef Queue queue
    cdef list streams = engine.unsealed_streams
    engine.unsealed_streams = []
    for queue in streams:
        queue.stream.is_unsealed = False
        engine.streams_waiting.append((engine.sealed_index, queue, queue.next_sequence - 1))
    return 0


cdef int commit_streams(Engine engine) except -1:
    cdef Queue queue
    while engine.streams_waiting and engine.streams_waiting[0][0] <= engine.commit_index:
        _, queue, end = engine.streams_waiting.popleft()
        stream_commit(queue.stream, end)
    return 0


cdef int give_receipts(Engine engine) except -1:
    while engine.receipts_waiting and engine.receipts_waiting[0][0] <= engine.received_index:
        confirms_received(engine.receipts_waiting.popleft()[1], engine.received_index)
    return 0


cdef int commit_outlets(Engine engine, uint64_t batch) except -1:
    engine.outlets_batch = max(engine.outlets_batch, batch)
    while engine.outlets_waiting and engine.outlets_waiting[0][0] <= engine.outlets_batch:
        confirms_committed(engine.outlets_waiting.popleft()[1], engine.commit_index)
    return 0


cdef int commit_all(Engine engine, uint64_t index) except -1:
    engine.commit_index = max(engine.commit_index, index)
    engine.received_index = max(engine.received_index, index)
    while engine.confirms_waiting and engine.confirms_waiting[0][0] <= engine.commit_index:
        confirms_committed(engine.confirms_waiting.popleft()[1], engine.commit_index)
    if engine.receipts_waiting:
        give_receipts(engine)
    if engine.queues_waiting:
        commit_queues(engine)
    if engine.streams_waiting:
        commit_streams(engine)
    return 0
