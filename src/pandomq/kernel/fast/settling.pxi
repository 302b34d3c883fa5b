# Settlements by clients of deliveries that they received.

cdef int settle_run(Engine engine, Session session, SettleRun run) except -1:
    cdef size_t at
    cdef Settlement* item
    cdef Channel channel = None
    for at in range(run.size):
        item = &run.items[at]
        if channel is None or channel.number != item.channel:
            if channel is not None:
                mirrors_flush(channel)
            channel = session.channels.get(item.channel)
            if channel is None:
                if not session.closed:
                    engine.hooks.unknown_channel(session, item.channel, C_BASIC, item.method_id)
                return 0
        if not channel.open:
            channel = None
        elif channel.mode == C_TRANSACTION:
            engine.hooks.settle(channel, item.method_id, item.tag, item.multiple != 0, item.requeue != 0)
            channel = None
        elif not channel.settle(item.method_id, item.tag, item.multiple, item.requeue):
            mirrors_flush(channel)
            engine.hooks.unknown_tag(channel, item.method_id, item.tag)
            channel = None
    return 0 if channel is None else mirrors_flush(channel)


cdef int settle_alone(Engine engine, Channel channel, int method_id, uint64_t tag, bint multiple,
                      bint requeue) except -1:
    if not channel.settle(method_id, tag, multiple, requeue):
        engine.hooks.unknown_tag(channel, method_id, tag)
    return mirrors_flush(channel)
