# Messages for queues that may refuse them, and for outlets.

cdef bint distribute_to_willing(Engine engine, Channel channel, Message message, tuple queues,
                                int64_t now_ms) except -1:
    # As Engine.distribute, if some of the queues have to be asked: first all are, then the willing ones get it.
    cdef Queue queue
    cdef bint refused = False
    cdef bint awaited = False
    engine.round += 1
    for queue in queues:
        awaited = awaited or queue.is_outlet
        if not queue.deleted:
            if queue.is_asked and queue.refuses(message, now_ms):
                refused = True
            else:
                queue.willing_in = engine.round
    if awaited and channel is not None and channel.mode == C_CONFIRM:
        confirms_await_receipt(channel)
    if message.kept or engine.replicated:
        engine.log_message(channel, message, queues, engine.round)
    for queue in queues:
        if queue.willing_in == engine.round:
            queue.insert(message, now_ms)
    if refused and channel is not None:
        engine.refuse(channel)
    return not refused
