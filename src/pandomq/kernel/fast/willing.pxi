# Messages for queues that may refuse them, for outlets, for streams, and for local queues.

cdef bint distribute_to_willing(Engine engine, Channel channel, Message message, tuple queues,
                                int64_t now_ms) except -1:
    # Like Engine.distribute, if some of the queues have to be asked: first all are asked, then those that accept it get
    # it.
    cdef Queue queue
    cdef bint refused = False
    cdef bint awaited = False
    cdef bint logged = False
    cdef bint local = False
    cdef Message unkept = message
    cdef Py_ssize_t streams = 0
    engine.round += 1
    for queue in queues:
        awaited = awaited or queue.is_outlet
        if not queue.deleted:
            local = local or queue.local
            if queue.stream is not None:
                streams += 1
                queue.willing_in = engine.round
            elif queue.may_refuse and queue.refuses(message, now_ms):
                refused = True
            else:
                queue.willing_in = engine.round
    if awaited and channel is not None and channel.mode == C_CONFIRM:
        confirms_await_receipt(channel)
    if message.kept or engine.replicated:
        logged = engine.log_message(channel, message, queues, engine.round)
    elif streams:
        log_for_streams(engine, channel, message, queues)
    if local and engine.replicated:
        if logged or message.holders:
            unkept = message.unkept_copy()
        else:
            message.kept = False
    for queue in queues:
        if queue.willing_in == engine.round:
            if queue.stream is not None:
                stream_insert(queue, message, now_ms)
            elif queue.local:
                queue.insert(unkept, now_ms)
            else:
                queue.insert(message, now_ms)
    if refused and channel is not None:
        engine.refuse(channel)
    return not refused


cdef int log_for_streams(Engine engine, Channel channel, Message message, tuple queues) except -1:
    # A message that is not logged otherwise: a message that enters a stream is always logged.
    cdef Queue queue
    if PyTuple_GET_SIZE(queues) > 1:
        queues = tuple([queue for queue in queues if queue.stream is not None and not queue.deleted])
    return engine.log_message(channel, message, queues, 0)


cdef tuple prepare_places(Engine engine, Channel channel, Message message, tuple queues, int flags, int64_t now_ms,
                          bint keep):
    cdef Queue queue
    cdef bint accepted = True
    cdef bint has_streams = False
    cdef bint local = False
    cdef list places = []
    if PyTuple_GET_SIZE(queues) == 0:
        return engine.distribute(channel, message, queues, flags, now_ms), places
    engine.round += 1
    for queue in queues:
        if not queue.deleted:
            local = local or queue.local
            if queue.may_refuse and queue.refuses(message, now_ms):
                accepted = False
            else:
                queue.willing_in = engine.round
                has_streams = has_streams or queue.stream is not None
    if keep:
        message.kept = True
    if message.kept or engine.replicated:
        engine.log_message(channel, message, queues, engine.round)
    elif has_streams:
        log_for_streams(engine, channel, message, queues)
    if local and engine.replicated:
        message.kept = False
    for queue in queues:
        if queue.willing_in == engine.round:
            places.append((queue, queue.await_message(message, now_ms), engine.term, queue.deadline_of(message, now_ms)))
    return accepted, places
