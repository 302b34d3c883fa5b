# How a broker that is not the root handles the messages of its clients; see plain/relay.py.

cdef int relay_publish(Engine engine, Session session, PublishRun run, int64_t now_ms) except -1:
    # Like Engine.publish, for a session with an uplink.
    cdef size_t at
    cdef Publish* item
    cdef Message message
    cdef Channel channel = None
    cdef RouteSlot* slot
    cdef tuple queues
    cdef Outlook outlook
    outlook_begin(&outlook)
    for at in range(run.size):
        item = &run.items[at]
        if channel is None or channel.number != item.channel:
            channel = session.channels.get(item.channel)
            if channel is None:
                if not session.closed:
                    engine.hooks.unknown_channel(session, item.channel, C_BASIC, C_PUBLISH)
                return 0
        slot = outlook_turn_to(&outlook, session.routes, run, at)
        if not channel.open:
            continue
        engine.published += 1
        message = <Message>item.message
        if slot == NULL or message.special or item.flags > C_MANDATORY or channel.mode == C_TRANSACTION:
            engine.hooks.publish(channel, run.routed_message(item), item.flags)
            channel = None
            continue
        message.routing = <bytes>slot.routing
        queues = (<Plan>slot.plan).queues
        if PyTuple_GET_SIZE(queues):
            # A queue of this broker took it: the root must not return it, even if the root has no queue for it.
            engine.distribute(None, message, queues, 0, now_ms)
            relay_forward(channel, message, 0)
        else:
            relay_forward(channel, message, item.flags)
    return 0


cdef inline int relay_forward(Channel channel, Message message, uint16_t flags) except -1:
    if not channel.open:
        return 0
    if channel.mode == C_CONFIRM:
        kept_add(channel, message, flags)
    return relay_write(channel, message, flags)


cdef inline int relay_write(Channel channel, Message message, uint16_t flags) except -1:
    # A basic.publish to the root.
    cdef Session uplink = channel.session.uplink
    cdef size_t routing_size, size
    cdef octet* p
    if uplink is None or uplink.closed:
        return 0
    routing_size = PyBytes_GET_SIZE(message.routing)
    size = 7 + routing_size
    p = uplink.room(size + FRAME_OVERHEAD + uplink.content_size(message))
    p = store32(store16(store8(p, C_METHOD), channel.number), <uint32_t>size)
    p = store16(store16(store16(p, C_BASIC), C_PUBLISH), 0)
    p = store_bytes(p, octets_of(message.routing), routing_size)
    p = store8(store8(p, flags & C_PUBLISH_BITS), C_FRAME_END)
    uplink.store_content(p, channel.number, message)
    return 0


cdef int relay_resend(Channel channel) except -1:
    cdef size_t at
    cdef Forwarded* forwarded
    cdef uint16_t flags
    if channel.kept != NULL:
        channel.kept.returned = 0
        for at in range(channel.kept.used):
            forwarded = kept_at(channel.kept, at)
            flags = forwarded.flags | C_CONFIRMED_BEFORE if forwarded.confirmed else forwarded.flags
            relay_write(channel, <Message>forwarded.message, flags)
    return 0


cdef int relay_down(Engine engine, Session session, SettleRun run) except -1:
    # Confirms of the root.
    cdef size_t at
    cdef Settlement* item
    cdef Channel channel = None
    cdef uint64_t count
    cdef uint64_t last = 0
    for at in range(run.size):
        item = &run.items[at]
        if channel is None or channel.number != item.channel:
            channel = session.channels.get(item.channel)
        if channel is None or channel.kept == NULL or item.method_id == C_REJECT:
            continue
        count = kept_confirm(channel, item.tag, item.multiple, &last)
        if count:
            if item.method_id == C_ACK:
                engine.confirmed += count
            confirms_write(channel, item.method_id, last, item.multiple)
    return 0
