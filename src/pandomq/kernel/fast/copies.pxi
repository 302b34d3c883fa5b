# Copies of octets as bytes objects, and the ones that are made once for all.

cdef inline bytes copied(const octet* data, size_t size):
    return PyBytes_FromStringAndSize(<const char*>data, size)


cdef inline bint same_bytes(bytes known, const octet* data, size_t size) noexcept:
    return <size_t>PyBytes_GET_SIZE(known) == size and memcmp(PyBytes_AS_STRING(known), data, size) == 0


cdef enum:
    KNOWN_ROUTINGS = 4096

# The same few exchanges and keys come again and again, on all connections: one object for each is quicker to look up
# than a new one, since it has been hashed before. Only a matter of speed: whatever is not here is made.
cdef PyObject* known_routings[KNOWN_ROUTINGS]


cdef bytes known_routing(const octet* data, size_t size):
    cdef uint64_t mixed = size
    cdef size_t slot
    cdef PyObject* known
    if size >= 8:
        mixed += load64(data) * 31 + load64(data + size - 8)
    else:
        mixed += data[0] + 31 * data[size - 1]
    slot = (mixed * <uint64_t>0x9E3779B97F4A7C15) >> 52
    known = known_routings[slot]
    if known == NULL or not same_bytes(<bytes>known, data, size):
        fresh = copied(data, size)
        Py_XDECREF(known)
        Py_INCREF(fresh)
        known_routings[slot] = <PyObject*>fresh
        return fresh
    return <bytes>known
