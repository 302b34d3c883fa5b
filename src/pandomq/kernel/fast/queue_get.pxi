# One message for a basic.get.

cdef object queue_get(Queue queue, Channel channel, bint no_ack, int64_t now_ms):
    cdef Entry entry
    cdef Message message
    queue_expire_heads(queue, now_ms)
    if not queue.ready.count:
        return None
    if ready_head_missing(&queue.ready):
        queue_want_head(queue)
        return None
    if queue_waits_for_log(queue):
        return None
    ready_pop_first(&queue.ready, &entry)
    if queue.mirror and not no_ack:
        mirrors_took(channel, &entry)
    message = <Message>entry.message
    if queue_samples(queue, entry.sequence):
        trace_delivered(queue, &entry, NULL)
    queue.count_delivery(&entry)
    if queue.counts_deliveries and entry.delivery_count:
        message = queue.engine.hooks.redelivered_copy(message, entry.delivery_count)
    channel.last_tag += 1
    if no_ack:
        queue_gone(queue, &entry)
    else:
        channel.keep_unacked(channel.last_tag, queue, &entry, NULL, now_ms)
    queue_watch_time(queue)
    return channel.last_tag, entry.redelivered != 0, message, queue.ready.count
