# Recently used routings, as bytes objects that all messages and connections share. This only saves memory: a routing
# that is not in the table is created, and replaces the one in its place.

cdef enum:
    KNOWN_ROUTINGS = 4096

cdef PyObject* known_routings[KNOWN_ROUTINGS]


cdef bytes known_routing(const octet* data, size_t size, uint64_t hashed):
    cdef PyObject** known = &known_routings[hashed % KNOWN_ROUTINGS]
    if known[0] == NULL or not same_bytes(<bytes>known[0], data, size):
        fresh = copied(data, size)
        Py_XDECREF(known[0])
        Py_INCREF(fresh)
        known[0] = <PyObject*>fresh
        return fresh
    return <bytes>known[0]
