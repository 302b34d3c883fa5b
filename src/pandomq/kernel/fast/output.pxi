# Bytes that grow at the end and are handed out as one bytes object: they are written once, and never copied to be
# handed out.

cdef struct Output:
    PyObject* data  # an owned bytes object of `capacity`, filled up to `size`; NULL if empty
    size_t size
    size_t capacity
    size_t expected  # the size of the last output: a guess at how much room will be needed


cdef enum:
    OUTPUT_CAPACITY_MIN = 128


cdef inline octet* output_reserve(Output* output, size_t more) except NULL:
    # Makes room for `size` more octets; the caller writes all of them.
    if output.size + more > output.capacity:
        output_grow(output, output.size + more)
    output.size += more
    return <octet*>PyBytes_AS_STRING(<bytes>output.data) + output.size - more


cdef int output_grow(Output* output, size_t wanted) except -1:
    cdef size_t capacity = max(wanted, output.capacity * 2)
    if output.data == NULL:
        capacity = max(wanted, output.expected, <size_t>OUTPUT_CAPACITY_MIN)
        fresh = PyBytes_FromStringAndSize(NULL, capacity)
        Py_INCREF(fresh)
        output.data = <PyObject*>fresh
    else:
        _PyBytes_Resize(&output.data, capacity)
    output.capacity = capacity
    return 0


cdef bytes output_take(Output* output):
    cdef bytes data
    if output.data == NULL:
        return NO_BYTES
    if output.size != output.capacity:
        _PyBytes_Resize(&output.data, output.size)
    data = <bytes>output.data
    Py_DECREF(data)
    output.expected = output.size
    output.data = NULL
    output.size = output.capacity = 0
    return data


cdef void output_clear(Output* output) noexcept:
    Py_XDECREF(output.data)
    output.data = NULL
    output.size = output.capacity = output.expected = 0
