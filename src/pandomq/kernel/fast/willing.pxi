# Messages for queues that may refuse them, for outlets, and for streams.

cdef bint distribute_to_willing(Engine engine, Channel channel, Message message, tuple queues,
                                int64_t now_ms) except -1:
    # As Engine.distribute, if some of the queues have to be asked: first all are, then the willing ones get it.
    cdef Queue queue
    cdef bint refused = False
    cdef bint awaited = False
    cdef Py_ssize_t streams = 0
    engine.round += 1
    for queue in queues:
        awaited = awaited or queue.is_outlet
        if not queue.deleted:
            if queue.stream is not None:
                streams += 1
                queue.willing_in = engine.round
            elif queue.is_asked and queue.refuses(message, now_ms):
                refused = True
            else:
                queue.willing_in = engine.round
    if awaited and channel is not None and channel.mode == C_CONFIRM:
        confirms_await_receipt(channel)
    if message.kept or engine.replicated:
        engine.log_message(channel, message, queues, engine.round)
    elif streams:
        log_for_streams(engine, channel, message, queues)
    for queue in queues:
        if queue.willing_in == engine.round:
            if queue.stream is not None:
                stream_insert(queue, message, now_ms)
            else:
                queue.insert(message, now_ms)
    if refused and channel is not None:
        engine.refuse(channel)
    return not refused


cdef int log_for_streams(Engine engine, Channel channel, Message message, tuple queues) except -1:
    # A message that is not logged otherwise: what enters a stream is so in any case.
    cdef Queue queue
    if PyTuple_GET_SIZE(queues) > 1:
        queues = tuple([queue for queue in queues if queue.stream is not None and not queue.deleted])
    return engine.log_message(channel, message, queues, 0)
