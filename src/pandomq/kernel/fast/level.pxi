# The messages after the head of one priority, in a queue that has pages of it: the pages, strays between them, and the
# tail. Without pages this object does not exist, and all messages are in the head, the ring of that priority.

cdef enum:
    # the head of a long queue keeps this many pages' worth: a page that was just loaded does not leave at once
    PAGES_KEPT = 2
    SHORT_PARTS = 16  # a page is worthwhile if it is at least one such part of a full one

cdef uint64_t OFFSET_MAX = 0xFFFFFFFF


@cython.final
cdef class PagedLevel:
    cdef Queue queue
    cdef list pages  # in the order of their sequences
    cdef Ring strays  # between the first page's first and the last page's last
    cdef Ring tail  # after the last page
    cdef Ring* head  # in the queue
    cdef int number

    def __dealloc__(self):
        ring_free(&self.strays)
        ring_free(&self.tail)

    cdef inline Page first_page(self):
        return <Page>PyList_GET_ITEM(self.pages, 0)

    cdef inline Page last_page(self):
        return <Page>PyList_GET_ITEM(self.pages, PyList_GET_SIZE(self.pages) - 1)

    cdef int merge(self, const Entry* entries, size_t count) except -1:
        # Puts entries, sorted by sequence, into their places.
        cdef uint64_t first = self.first_page().first
        cdef uint64_t last = self.last_page().last()
        cdef size_t below = 0
        cdef size_t above
        while below < count and entries[below].sequence < first:
            below += 1
        above = below
        while above < count and entries[above].sequence <= last:
            above += 1
        if below:
            ring_merge(self.head, entries, below)
        if above > below:
            ring_merge(&self.strays, entries + below, above - below)
        if count > above:
            ring_merge(&self.tail, entries + above, count - above)
        return 0

    cdef bint remove(self, uint64_t sequence, Entry* entry) except -1:
        # Whether it was in memory, after the head.
        return ring_remove(&self.strays, sequence, entry) or ring_remove(&self.tail, sequence, entry)

    cdef int add_page(self, Page page) except -1:
        if PyList_GET_SIZE(self.pages) == 0 or page.first > self.last_page().last():
            self.pages.append(page)
        elif page.last() < self.first_page().first:
            self.pages.insert(0, page)
        else:
            raise ValueError("pages overlap")
        return 0

    cdef inline int read_ahead(self) except -1:
        # Requests pages: as many as the head's share, while that is being used up.
        cdef size_t ahead = self.head.used - self.head.holes
        cdef Py_ssize_t count = min(PyList_GET_SIZE(self.pages), <Py_ssize_t>C_PAGES_AHEAD)
        cdef Py_ssize_t at
        cdef PyObject* page
        for at in range(count):
            page = PyList_GET_ITEM(self.pages, at)
            if ahead > (<Page>page).count:
                break
            if not (<Page>page).wanted:
                (<Page>page).wanted = True
                self.queue.engine.wanted.append(<Page>page)
            ahead += (<Page>page).count
        return 0

    cdef bint is_reading(self) except -1:
        # The pages being loaded would come before the messages that leave the head now.
        cdef Page page
        for page in self.pages[:C_PAGES_AHEAD]:
            if page.wanted:
                return True
        return False

    cdef int settle(self) except -1:
        # A page is gone: strays without a page around them go to the head or the tail. Without any page all messages go
        # to the head, and this object is no longer needed.
        if PyList_GET_SIZE(self.pages):
            ring_move(&self.strays, 0, ring_find(&self.strays, self.first_page().first), self.head)
            ring_move(&self.strays, ring_find(&self.strays, self.last_page().last() + 1), self.strays.used, &self.tail)
            return 0
        ring_move(&self.strays, 0, self.strays.used, self.head)
        if self.head.used:
            ring_move(&self.tail, 0, self.tail.used, self.head)
        else:
            free(self.head.slots)
            self.head[0] = self.tail
            self.tail = Ring(NULL, 0, 0, 0, 0, 0, 0, NULL)
        self.head.level = NULL
        self.queue.paged_levels.remove(self)
        return 0

    cdef int64_t next_deadline_ms(self) noexcept:
        # For a level whose head is empty: when the first message may have to expire; 0 means that its page has to be
        # loaded to find out. While the page is being loaded it is NEVER.
        cdef PyObject* page = PyList_GET_ITEM(self.pages, 0)
        if (<Page>page).wanted:
            return NEVER
        return 0 if (<Page>page).is_gone(0) else (<Page>page).first_deadline_ms

    cdef Page find_page(self, uint64_t sequence):
        # The first page whose last sequence is not lower; None if there is none.
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = PyList_GET_SIZE(self.pages)
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if (<Page>PyList_GET_ITEM(self.pages, middle)).last() < sequence:
                low = middle + 1
            else:
                high = middle
        return <Page>PyList_GET_ITEM(self.pages, low) if low < PyList_GET_SIZE(self.pages) else None


cdef Entry* ready_peek(Ready* ready, uint64_t sequence) except? NULL:
    # The position of the message, if it is in memory.
    cdef int level
    cdef Ring* ring
    cdef Entry* entry
    ready_settle(ready)
    if ready.count == 0:
        return NULL
    for level in range(ready.priority_max + 1):
        ring = ready_ring(ready, level)
        entry = ring_peek(ring, sequence)
        if entry == NULL and ring.level != NULL:
            entry = ring_peek(&(<PagedLevel>ring.level).strays, sequence)
            if entry == NULL:
                entry = ring_peek(&(<PagedLevel>ring.level).tail, sequence)
        if entry != NULL:
            return entry
    return NULL


cdef inline Entry* ring_peek(Ring* ring, uint64_t sequence) noexcept nogil:
    cdef size_t at
    cdef Entry* entry
    if ring.used == 0:
        return NULL
    at = ring_find(ring, sequence)
    if at == ring.used:
        return NULL
    entry = ring_at(ring, at)
    return entry if entry.sequence == sequence and entry.message != NULL else NULL


cdef PagedLevel queue_level(Queue queue, int number):
    # The level of the priority; created if there was none.
    cdef Ring* head
    cdef PagedLevel level
    if queue.ready.priority_max and queue.ready.rings == NULL:
        ready_make_rings(&queue.ready)
    head = ready_ring(&queue.ready, number)
    if head.level != NULL:
        return <PagedLevel>head.level
    level = PagedLevel.__new__(PagedLevel)
    level.queue = queue
    level.pages = []
    level.head = head
    level.number = number
    if queue.paged_levels is None:
        queue.paged_levels = []
    queue.paged_levels.append(level)
    head.level = <PyObject*>level
    return level


cdef bint ring_gives_page(Ring* ring, size_t parts, size_t of, Engine engine) noexcept:
    # Whether the ring holds `parts` parts of a page, of which a full one has `of`.
    cdef size_t count = ring.used - ring.holes
    return count > 0 and (count * of >= parts * engine.page_messages or ring.held_bytes * of >= parts * engine.page_bytes)
