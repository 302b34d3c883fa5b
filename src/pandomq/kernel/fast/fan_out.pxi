# Puts a message that the root sends once for all private queues of this broker into each of them; see plain/fan_out.py.

cdef enum:
    LABEL_SIZE = 8


cdef int fan_out_run(Engine engine, Routes routes, owner, DeliveryRun run, dict seen, int64_t now_ms) except -1:
    cdef size_t at
    cdef Delivery* item
    cdef Message message
    cdef RouteSlot* slot
    cdef uint64_t producer
    # The messages of one publisher mostly arrive together: only the last one is noted in the dictionary.
    cdef uint64_t last_producer = 0
    cdef uint64_t last_number = 0
    for at in range(run.size):
        item = &run.items[at]
        message = <Message>item.message
        if item.consumer_size == LABEL_SIZE:
            producer = load64(run.consumers + item.consumer_at)
            if producer:
                if producer != last_producer:
                    note_seen(seen, last_producer, last_number)
                    last_producer = producer
                    last_number = seen.get(producer, 0)
                if item.tag <= last_number:
                    continue
                last_number = item.tag
        slot = NULL
        if not message.special:
            slot = routes.slot_of(octets_of(message.routing), PyBytes_GET_SIZE(message.routing), item.hashed)
        if slot == NULL or slot.routing == NULL or not (<Plan>slot.plan).valid:
            note_seen(seen, last_producer, last_number)
            engine.hooks.fan_out(owner, message)
        elif PyTuple_GET_SIZE((<Plan>slot.plan).queues):
            engine.distribute(None, message, (<Plan>slot.plan).queues, 0, now_ms)
    return note_seen(seen, last_producer, last_number)


cdef inline int note_seen(dict seen, uint64_t producer, uint64_t number) except -1:
    if producer and number:
        # At the end: the first entries are the producers that have not published for the longest time.
        seen.pop(producer, None)
        seen[producer] = number
    return 0


cdef int deliver_rewritten(Consumer consumer, Entry* entry) except -1:
    # With a header that counts deliveries, or labelled.
    cdef Channel channel = consumer.channel
    cdef Message message = <Message>entry.message
    cdef Message copy = message
    cdef bytes tag = consumer.tag
    cdef uint64_t number = channel.last_tag
    cdef octet label[LABEL_SIZE]
    if consumer.is_labelled:
        number = message.number
        store64(label, message.producer)
        tag = copied(label, LABEL_SIZE) if message.producer else NO_BYTES
    if consumer.queue.counts_deliveries and entry.delivery_count:
        copy = channel.session.engine.hooks.redelivered_copy(message, entry.delivery_count)
    return channel.session.write_delivery(channel.number, tag, number, entry.redelivered, copy,
                                          entry if consumer.identified else NULL)
