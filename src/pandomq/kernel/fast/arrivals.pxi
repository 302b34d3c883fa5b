# Methods with content that another broker sends: basic.deliver, basic.return, basic.get-ok; see plain/arrivals.py.

cdef size_t whole_delivery(Scanner scanner, const octet* data, size_t size, uint16_t number,
                           size_t method_size) except? 0:
    # As Scanner.whole_publish.
    cdef const octet* method = data + 7
    cdef const octet* end = data + size
    cdef size_t routing
    cdef Message message
    if method_size < 5 or load32(method) != (C_BASIC << 16 | C_DELIVER):
        return 0
    routing = 14 + method[4]
    if not routing_fills(method, routing, method_size):
        return 0
    message = scanner.whole_content(method + method_size, number, &end)
    if message is None:
        return 0
    add_delivery(scanner, number, message, method + routing, method_size - routing, method + 5, method[4],
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
    # The method came; its content will follow.
    cdef Incoming content
    cdef size_t routing = 13  # where that begins
    cdef size_t end = size  # and ends
    if method_id == C_RETURN:
        routing = 7 + payload[6] if size > 6 else size
    elif method_id == C_DELIVER:
        routing = 14 + payload[4] if size > 4 else size
    else:
        end = size - 4
    if not routing_fills(payload, routing, end):
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
    else:
        content.method = copied(payload, size)
    return scanner.await_content(number, content)


cdef int arrived(Scanner scanner, uint16_t number, Incoming content, Message message) except -1:
    # It is complete.
    if content.is_delivery:
        return add_delivery(scanner, number, message, octets_of(content.routing), PyBytes_GET_SIZE(content.routing),
                            octets_of(content.method), <uint8_t>PyBytes_GET_SIZE(content.method),
                            content.delivery_tag, content.redelivered)
    message.routing = content.routing
    scanner.add_output(Content(number, content.method, message))
    return 0


cdef inline bint routing_fills(const octet* payload, size_t start, size_t end) noexcept nogil:
    # Whether there are two short strings, and nothing more.
    cdef size_t key
    if start >= end:
        return False
    key = start + 1 + payload[start]
    return key < end and key + 1 + payload[key] == end
