# Methods with content that another broker sends: basic.deliver, basic.return, basic.get-ok; see plain/arrivals.py.

cdef enum:
    PLACE_SIZE = 16  # sequence and term
    GOT_PLACE_SIZE = 24  # the queue's id before them
    MESSAGE_COUNT_SIZE = 4


cdef size_t whole_delivery(Scanner scanner, const octet* data, size_t size, uint16_t number,
                           size_t method_size) except? 0:
    # Like Scanner.whole_publish.
    cdef const octet* method = data + 7
    cdef const octet* end = data + size
    cdef size_t routing, routing_end
    cdef Message message
    if method_size < 5 or load32(method) != (C_BASIC << 16 | C_DELIVER):
        return 0
    routing = 14 + method[4]
    routing_end = end_of_routing(method, routing, method_size)
    if routing_end != method_size and routing_end + PLACE_SIZE != method_size:
        return 0
    message = scanner.whole_content(method + method_size, number, &end)
    if message is None:
        return 0
    if routing_end != method_size:
        message.number = load64(method + routing_end)
        message.producer = load64(method + routing_end + 8)
    add_delivery(scanner, number, message, method + routing, routing_end - routing, method + 5, method[4],
                 load64(method + routing - 9), method[routing - 1] & 1)
    return end - data


cdef inline int add_delivery(Scanner scanner, uint16_t number, Message message, const octet* routing,
                             size_t routing_size, const octet* consumer, uint8_t consumer_size, uint64_t tag,
                             bint redelivered) except -1:
    cdef Delivery* item
    if scanner.deliveries is None:
        run = DeliveryRun.__new__(DeliveryRun)
        scanner.add_output(run)
        scanner.deliveries = run
    item = scanner.deliveries.add(message, routing, routing_size, consumer, consumer_size)
    item.channel = number
    item.tag = tag
    item.redelivered = redelivered
    return 0


cdef int arrive(Scanner scanner, uint16_t number, uint16_t method_id, const octet* payload, size_t size) except -1:
    # The method was read; its content follows.
    cdef Incoming content
    cdef size_t routing = 13  # start of the routing
    cdef size_t end  # end of the routing
    cdef size_t least = 0  # octets that follow at least
    cdef size_t more = 0  # or this many more
    if method_id == C_RETURN:
        routing = 7 + payload[6] if size > 6 else size
    elif method_id == C_DELIVER:
        routing = 14 + payload[4] if size > 4 else size
        more = PLACE_SIZE
    else:
        least = MESSAGE_COUNT_SIZE
        more = GOT_PLACE_SIZE
    end = end_of_routing(payload, routing, size)
    if end + least != size and end + least + more != size:
        return scanner.fail(faults.undecodable_method(copied(payload + 4, size - 4), C_BASIC, method_id))
    if number == 0:
        return scanner.fail(faults.method_on_channel_0(C_BASIC, method_id))
    content = Incoming.__new__(Incoming)
    content.routing = copied(payload + routing, end - routing)
    if method_id == C_DELIVER:
        content.is_delivery = True
        content.method = copied(payload + 5, payload[4])
        content.delivery_tag = load64(payload + routing - 9)
        content.redelivered = payload[routing - 1] & 1
        if end != size:
            content.place[0] = load64(payload + end)
            content.place[1] = load64(payload + end + 8)
    else:
        content.method = copied(payload, size)
    return scanner.await_content(number, content)


cdef int arrived(Scanner scanner, uint16_t number, Incoming content, Message message) except -1:
    # It is complete.
    if content.is_delivery:
        message.number = content.place[0]
        message.producer = content.place[1]
        return add_delivery(scanner, number, message, octets_of(content.routing), PyBytes_GET_SIZE(content.routing),
                            octets_of(content.method), <uint8_t>PyBytes_GET_SIZE(content.method),
                            content.delivery_tag, content.redelivered)
    message.routing = content.routing
    scanner.add_output(Content(number, content.method, message))
    return 0


cdef inline size_t end_of_routing(const octet* payload, size_t start, size_t size) noexcept nogil:
    # End of the second of two short strings; beyond the payload if one of them is.
    cdef size_t key
    if start >= size:
        return size + 1
    key = start + 1 + payload[start]
    return size + 1 if key >= size else key + 1 + payload[key]
