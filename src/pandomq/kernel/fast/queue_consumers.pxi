# The consumers of a queue: registered ones in order of priority and age, and those that may take a turn.

cdef int queue_add_consumer(Queue queue, Consumer consumer) except -1:
    cdef Py_ssize_t at
    queue.engine.moves += 1
    if queue.members is None:
        queue.members = []
    at = PyList_GET_SIZE(queue.members)
    while at and (<Consumer>PyList_GET_ITEM(queue.members, at - 1)).priority < consumer.priority:
        at -= 1
    queue.members.insert(at, consumer)
    consumer.turn = rotation_join(&queue.rotation, consumer.priority)
    if not queue.single_active or PyList_GET_SIZE(queue.members) == 1:
        consumer.active = True
        consumer.wake()
    return 0


cdef int queue_remove_consumer(Queue queue, Consumer consumer) except -1:
    cdef Consumer successor
    queue.engine.moves += 1
    queue.members.remove(consumer)
    if not queue.members:
        queue.members = None
    rotation_leave(&queue.rotation, consumer.turn)
    if consumer.active and queue.single_active and queue.members is not None:
        successor = <Consumer>PyList_GET_ITEM(queue.members, 0)
        successor.active = True
        successor.wake()
    consumer.active = False
    return 0


cdef inline void queue_activate(Queue queue) noexcept:
    # The next deliver will run this queue.
    if not queue.is_active and not queue.deleted:
        queue.is_active = True
        queue.engine.active_queues.append(queue)


cdef inline void queue_activate_if_ready(Queue queue) noexcept:
    if queue.ready.count:
        queue_activate(queue)
