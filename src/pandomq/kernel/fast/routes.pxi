# Remembered decisions of the broker: where messages of one exchange and key go.

@cython.final
cdef class Plan:
    cdef readonly tuple queues
    cdef readonly bint valid

    def __init__(self, queues):
        self.queues = queue_tuple(queues)
        self.valid = True

    def withdraw(self):
        # It may be remembered for long: the queues must not be.
        self.valid = False
        self.queues = ()


@cython.final
cdef class Routes:
    cdef size_t capacity
    cdef dict plans  # by Message.routing

    def __init__(self, size_t capacity):
        self.capacity = capacity
        self.plans = {}

    def __len__(self):
        return len(self.plans)

    def put(self, bytes routing not None, Plan plan not None):
        if <size_t>len(self.plans) >= self.capacity and routing not in self.plans:
            self.plans.clear()
        self.plans[routing] = plan

    def clear(self):
        self.plans.clear()


cdef tuple queue_tuple(queues):
    # What comes from Python is checked once, here.
    cdef tuple checked = queues if type(queues) is tuple else tuple(queues)
    for queue in checked:
        if type(queue) is not Queue:
            raise TypeError(f"a queue is wanted, not {queue!r}")
    return checked
