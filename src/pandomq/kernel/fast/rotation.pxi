# The consumers of one queue that may take a message, by priority, one message each in turn.

cdef struct Turn:
    Chain ready  # must be first: the code compares a consumer's chain with its turn's
    int64_t priority
    size_t members  # registered, ready or not
    Turn* lower


cdef Turn* rotation_join(Turn** rotation, int64_t priority) except NULL:
    # The turn for a new consumer of this priority.
    cdef Turn** place = rotation
    cdef Turn* turn
    while place[0] != NULL and place[0].priority > priority:
        place = &place[0].lower
    if place[0] == NULL or place[0].priority != priority:
        turn = <Turn*>malloc(sizeof(Turn))
        if turn == NULL:
            raise MemoryError
        turn[0] = Turn(Chain(NULL, NULL), priority, 0, place[0])
        place[0] = turn
    place[0].members += 1
    return place[0]


cdef void rotation_leave(Turn** rotation, Turn* turn) noexcept:
    cdef Turn** place = rotation
    turn.members -= 1
    if turn.members:
        return
    while place[0] != turn:
        place = &place[0].lower
    place[0] = turn.lower
    free(turn)


cdef inline Turn* rotation_turn(Turn* turn) noexcept:
    # The turn whose first consumer may take a message; NULL if none may.
    cdef PyObject* consumer
    while turn != NULL:
        while turn.ready.first != NULL:
            consumer = turn.ready.first
            if not (<Consumer>consumer).has_obstacle():
                return turn
            chain_remove(<Consumer>consumer)
            (<Consumer>consumer).rest()
        turn = turn.lower
    return NULL


cdef inline PyObject* rotation_next(Turn* turn) noexcept:
    # The consumer that gets the next message, already moved to the end of its turn; NULL if none may have it.
    cdef PyObject* consumer
    turn = rotation_turn(turn)
    if turn == NULL:
        return NULL
    consumer = turn.ready.first
    chain_rotate(&turn.ready)
    return consumer


cdef void rotation_free(Turn** rotation) noexcept:
    cdef Turn* turn
    while rotation[0] != NULL:
        turn = rotation[0]
        rotation[0] = turn.lower
        free(turn)
