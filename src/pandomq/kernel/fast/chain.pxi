# A list of consumers that any of them can leave in one step: the links are in the consumers themselves.
# Links do not own: each consumer in a chain is registered with its queue.

cdef struct Chain:
    PyObject* first
    PyObject* last


cdef inline void chain_append(Chain* chain, Consumer consumer) noexcept:
    consumer.chain = chain
    consumer.before = chain.last
    consumer.after = NULL
    if chain.last == NULL:
        chain.first = <PyObject*>consumer
    else:
        (<Consumer>chain.last).after = <PyObject*>consumer
    chain.last = <PyObject*>consumer


cdef inline void chain_remove(Consumer consumer) noexcept:
    cdef Chain* chain = consumer.chain
    if consumer.before == NULL:
        chain.first = consumer.after
    else:
        (<Consumer>consumer.before).after = consumer.after
    if consumer.after == NULL:
        chain.last = consumer.before
    else:
        (<Consumer>consumer.after).before = consumer.before
    consumer.chain = NULL
    consumer.before = consumer.after = NULL


cdef inline void chain_rotate(Chain* chain) noexcept:
    # The first becomes the last.
    cdef PyObject* first = chain.first
    if first != chain.last:
        chain_remove(<Consumer>first)
        chain_append(chain, <Consumer>first)
