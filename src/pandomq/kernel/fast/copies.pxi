# Copies of octets as bytes objects.

cdef bytes NO_BYTES = b""


cdef inline bytes copied(const octet* data, size_t size):
    return PyBytes_FromStringAndSize(<const char*>data, size)


cdef inline bint same_bytes(bytes known, const octet* data, size_t size) noexcept:
    return <size_t>PyBytes_GET_SIZE(known) == size and memcmp(PyBytes_AS_STRING(known), data, size) == 0
