# References that the garbage collector needs and Cython does not report.

cdef extern from "Python.h":
    ctypedef int (*visitproc)(PyObject* found, void* argument) noexcept
    ctypedef int (*traverseproc)(PyObject* object, visitproc visit, void* argument) noexcept
    ctypedef struct PyTypeObject:
        traverseproc tp_traverse


cdef traverseproc channel_traverse_attributes = (<PyTypeObject*>Channel).tp_traverse


cdef int channel_traverse(PyObject* channel, visitproc visit, void* argument) noexcept:
    # The garbage collector does not look into C arrays. A queue refers to its consumers, these refer to their channel,
    # and its window refers to the queue: a broker that restarts its state with unacked deliveries would never be freed.
    cdef Window* window = &(<Channel>channel).window
    cdef Unacked* unacked
    cdef size_t at
    cdef int stop = channel_traverse_attributes(channel, visit, argument)
    for at in range(window.used):
        unacked = window_at(window, at)
        if stop == 0 and unacked.queue != NULL:
            stop = visit(unacked.queue, argument)
        if stop == 0 and unacked.queue != NULL and unacked.consumer != NULL:
            stop = visit(unacked.consumer, argument)
    return stop


(<PyTypeObject*>Channel).tp_traverse = channel_traverse
