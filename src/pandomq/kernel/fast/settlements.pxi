# Acks, nacks and rejects, as a scanner finds them.

cdef enum:
    SETTLEMENT_SIZE = 13


cdef int settlement(Scanner scanner, uint16_t number, uint16_t method_id, const octet* payload, size_t size) except -1:
    if size != SETTLEMENT_SIZE:
        return scanner.fail(faults.undecodable_method(copied(payload + 4, size - 4), C_BASIC, method_id))
    if number == 0:
        return scanner.fail(faults.method_on_channel_0(C_BASIC, method_id))
    if scanner.settlements is None:
        run = SettleRun.__new__(SettleRun)
        scanner.add_output(run)
        scanner.settlements = run
    return add_settlement(scanner.settlements, number, method_id, payload)


cdef inline bint one_more_settlement(Scanner scanner, uint16_t number, const octet* payload) except -1:
    # Settlements mostly arrive in series. Whether this one follows another, and nothing about it is unusual.
    cdef uint16_t method_id = load16(payload + 2)
    if scanner.settlements is None or load16(payload) != C_BASIC or scanner.contents is not None or number == 0:
        return False
    if payload[SETTLEMENT_SIZE] != C_FRAME_END or not (method_id == C_ACK or method_id == C_NACK
                                                       or method_id == C_REJECT):
        return False
    add_settlement(scanner.settlements, number, method_id, payload)
    return True


cdef inline int add_settlement(SettleRun run, uint16_t number, uint16_t method_id, const octet* payload) except -1:
    cdef Settlement* item = run.add()
    cdef octet bits = payload[12]
    item.tag = load64(payload + 4)
    item.channel = number
    item.method_id = <uint8_t>method_id
    item.multiple = bits & 1 if method_id != C_REJECT else 0
    item.requeue = bits & 1 if method_id == C_REJECT else (bits >> 1 & 1 if method_id == C_NACK else 0)
    return 0
