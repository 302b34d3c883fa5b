# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: auto_pickle=False
"""Writes and syncs open files in a thread of its own that never takes the interpreter's lock; `_log_writer.pyi` is the
contract.

Requests and their results share one ring. Three counts divide it: `filled` and `taken` belong to the caller,
`submitted` and `done` to both sides, under the mutex.

    taken  ≤  done  ≤  submitted  ≤  filled  ≤  taken + slots

The thread owns the requests from `done` to `submitted`, and the caller owns all others. The thread reads the caller's
tuples and bytes where they are, without the interpreter's lock: neither ever changes, and the ring holds a reference to
each tuple until its request is taken. Memory that the thread may still use is never freed: if the caller drops a writer
without `stop`, the ring stays.
"""

from cpython.bytes cimport PyBytes_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from posix.signal cimport sigfillset, sigset_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.types cimport off_t, pid_t
from posix.unistd cimport fdatasync, getpid
from posix.unistd cimport write as write_to

import os

cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t pwritev(int fd, const iovec *pieces, int count, off_t offset)

cdef extern from "<signal.h>" nogil:
    int SIG_SETMASK
    int pthread_sigmask(int how, const sigset_t *new, sigset_t *old)

cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct pthread_mutex_t:
        pass
    int pthread_mutex_init(pthread_mutex_t *mutex, void *attributes)
    int pthread_mutex_lock(pthread_mutex_t *mutex)
    int pthread_mutex_unlock(pthread_mutex_t *mutex)
    int pthread_create(pthread_t *thread, void *attributes, void *(*run)(void *) noexcept nogil, void *argument)
    int pthread_join(pthread_t thread, void **result)
    int pthread_setname_np(pthread_t thread, const char *name)

cdef extern from "<semaphore.h>" nogil:
    ctypedef struct sem_t:
        pass
    int sem_init(sem_t *semaphore, int shared, unsigned int value)
    int sem_post(sem_t *semaphore)
    int sem_wait(sem_t *semaphore)

# These macros read fields that never change; they need no lock.
cdef extern from "Python.h" nogil:
    Py_ssize_t tuple_size "PyTuple_GET_SIZE"(PyObject *chunks)
    PyObject *tuple_item "PyTuple_GET_ITEM"(PyObject *chunks, Py_ssize_t place)
    Py_ssize_t bytes_size "PyBytes_GET_SIZE"(PyObject *chunk)
    char *bytes_start "PyBytes_AS_STRING"(PyObject *chunk)

cdef enum:
    PIECES_PER_WRITE_MAX = 1024  # The system's maximum for one call (IOV_MAX).
    STRETCHES_MAX = 16  # Places of a file in one run. Bodies, slots and marks of waiting groups are four.


cdef struct Request:
    int64_t ticket
    int fd
    bint is_sync
    off_t offset
    size_t size_bytes
    PyObject *chunks  # A reference that the ring owns; NULL for a sync.
    uint64_t following  # The request that continues this one's stretch.
    int error
    int64_t synced_ns  # How long the run took, if the request is the last sync of its run.


cdef struct Stretch:
    off_t start
    off_t end
    uint64_t first
    uint64_t last


cdef struct Ring:
    pthread_mutex_t mutex
    sem_t work  # Posted once for each call of `submit`: cheaper than a condition, which also contends for the mutex.
    uint64_t submitted
    uint64_t done
    bint stopping
    bint woken  # The caller has been woken, and has not looked yet.
    int wake_fd
    size_t slots
    size_t run_bytes_max
    Request *requests
    iovec pieces[PIECES_PER_WRITE_MAX]
    Stretch stretches[STRETCHES_MAX]


cdef inline Request *request_at(Ring *ring, uint64_t number) noexcept nogil:
    return &ring.requests[number % ring.slots]


# The thread.


cdef void *carry_out(void *argument) noexcept nogil:
    cdef Ring *ring = <Ring *> argument
    cdef uint64_t first, end
    cdef bint stopping, wakes
    while True:
        pthread_mutex_lock(&ring.mutex)
        first, end = ring.done, ring.submitted
        stopping = ring.stopping
        pthread_mutex_unlock(&ring.mutex)
        if first == end:
            if stopping:
                return NULL
            # It returns early after requests that were carried out together with earlier ones.
            sem_wait(&ring.work)
            continue
        end = perform_run(ring, first, end)
        pthread_mutex_lock(&ring.mutex)
        ring.done = end
        wakes = not ring.woken
        ring.woken = True
        pthread_mutex_unlock(&ring.mutex)
        if wakes:
            wake(ring.wake_fd)


cdef void wake(int fd) noexcept nogil:
    cdef uint64_t one = 1
    # The only failure that can happen is that the counter is full; then the caller is awake.
    while write_to(fd, &one, sizeof(one)) < 0 and errno == EINTR:
        pass


cdef uint64_t perform_run(Ring *ring, uint64_t first, uint64_t end) noexcept nogil:
    """Joins consecutive requests of one file, as `disk_runs` does, carries them out, and returns the end of the run."""
    cdef Request *request = request_at(ring, first)
    cdef int fd = request.fd, count = 0, error = 0, place
    cdef size_t size_bytes = 0
    cdef uint64_t number = first, last_sync = end
    cdef bint in_sync = False
    cdef int64_t started_ns
    while number < end:
        request = request_at(ring, number)
        if request.fd != fd:
            break
        if request.is_sync:
            last_sync = number
        else:
            size_bytes += request.size_bytes
            if number != first and size_bytes > ring.run_bytes_max:
                break
            if not add_to_stretches(ring, &count, number):
                break
        number += 1
    started_ns = now_ns()
    for place in range(count):
        error = write_stretch(ring, &ring.stretches[place], fd)
        if error:
            break
    if not error and last_sync < number:
        in_sync = True
        error = sync(fd)
    for place in range(<int> (number - first)):
        request = request_at(ring, first + place)
        # A failed sync leaves the writes before it in an unknown state.
        request.error = 0 if in_sync and not request.is_sync else error
    if last_sync < number:
        request_at(ring, last_sync).synced_ns = now_ns() - started_ns
    return number


cdef bint add_to_stretches(Ring *ring, int *count, uint64_t number) noexcept nogil:
    """Returns whether there was room."""
    cdef Request *request = request_at(ring, number)
    cdef off_t end = request.offset + <off_t> request.size_bytes
    cdef Stretch *stretch
    cdef int place
    for place in range(count[0]):
        stretch = &ring.stretches[place]
        if stretch.end == request.offset and not overtakes(ring, place + 1, count[0], request.offset, end):
            request_at(ring, stretch.last).following = number
            stretch.last = number
            stretch.end = end
            return True
    if count[0] == STRETCHES_MAX:
        return False
    stretch = &ring.stretches[count[0]]
    count[0] += 1
    stretch.start, stretch.end = request.offset, end
    stretch.first = stretch.last = number
    return True


cdef bint overtakes(Ring *ring, int first, int end, off_t start, off_t stop) noexcept nogil:
    """Whether one of these stretches, which are written later, has an earlier write to the same place."""
    cdef int place
    for place in range(first, end):
        if ring.stretches[place].start < stop and start < ring.stretches[place].end:
            return True
    return False


cdef int write_stretch(Ring *ring, Stretch *stretch, int fd) noexcept nogil:
    """Returns the error's number, or 0."""
    cdef uint64_t number = stretch.first
    cdef off_t offset = stretch.start
    cdef Request *request
    cdef PyObject *chunk
    cdef Py_ssize_t place, length
    cdef int count = 0, error
    while True:
        request = request_at(ring, number)
        for place in range(tuple_size(request.chunks)):
            chunk = tuple_item(request.chunks, place)
            length = bytes_size(chunk)
            if not length:
                continue
            if count == PIECES_PER_WRITE_MAX:
                error = write_pieces(ring.pieces, count, fd, &offset)
                if error:
                    return error
                count = 0
            ring.pieces[count].iov_base = bytes_start(chunk)
            ring.pieces[count].iov_len = length
            count += 1
        if number == stretch.last:
            return write_pieces(ring.pieces, count, fd, &offset)
        number = request.following


cdef int write_pieces(iovec *pieces, int count, int fd, off_t *offset) noexcept nogil:
    """Writes all of them, however often the system stops early. Returns the error's number, or 0."""
    cdef ssize_t written
    while count:
        written = pwritev(fd, pieces, count, offset[0])
        if written < 0:
            if errno == EINTR:
                continue
            return errno
        if written == 0:
            return EIO
        offset[0] += written
        while count and <size_t> written >= pieces.iov_len:
            written -= pieces.iov_len
            pieces += 1
            count -= 1
        if written:
            pieces.iov_base = <char *> pieces.iov_base + written
            pieces.iov_len -= written
    return 0


cdef int sync(int fd) noexcept nogil:
    while fdatasync(fd) < 0:
        if errno != EINTR:
            return errno
    return 0


cdef int64_t now_ns() noexcept nogil:
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * <int64_t> 1_000_000_000 + time.tv_nsec


# The caller.


cdef class LogWriter:
    cdef Ring *ring
    cdef pthread_t thread
    cdef pid_t process
    cdef uint64_t filled
    cdef uint64_t taken
    cdef bint running

    def __init__(self, int wake_fd, *, size_t requests_max, size_t run_bytes_max):
        if not requests_max or self.ring is not NULL:
            raise ValueError("a writer begins once, with room for at least one request")
        self.ring = <Ring *> calloc(1, sizeof(Ring))
        if self.ring is NULL:
            raise MemoryError
        self.ring.requests = <Request *> calloc(requests_max, sizeof(Request))
        if self.ring.requests is NULL:
            raise MemoryError
        self.ring.slots = requests_max
        self.ring.run_bytes_max = run_bytes_max
        self.ring.wake_fd = wake_fd
        pthread_mutex_init(&self.ring.mutex, NULL)
        sem_init(&self.ring.work, 0, 0)
        self.process = getpid()
        self.start()

    cdef start(self):
        cdef sigset_t all_signals, before
        cdef int error
        sigfillset(&all_signals)
        # Signals are for the interpreter's threads.
        pthread_sigmask(SIG_SETMASK, &all_signals, &before)
        error = pthread_create(&self.thread, NULL, carry_out, self.ring)
        pthread_sigmask(SIG_SETMASK, &before, NULL)
        if error:
            raise OSError(error, os.strerror(error))
        self.running = True
        pthread_setname_np(self.thread, b"disk-log")

    def __dealloc__(self):
        if self.ring is not NULL and not self.running:
            free(self.ring.requests)
            free(self.ring)

    def add_write(self, int64_t ticket, int fd, int64_t offset, tuple chunks not None):
        cdef size_t size_bytes = 0
        for chunk in chunks:
            if not PyBytes_CheckExact(chunk):
                raise TypeError(f"a chunk is bytes, not {type(chunk).__name__}")
            size_bytes += bytes_size(<PyObject *> chunk)
        cdef Request *request = self.next_request()
        if request is NULL:
            return False
        request.ticket = ticket
        request.fd = fd
        request.is_sync = False
        request.offset = offset
        request.size_bytes = size_bytes
        Py_INCREF(chunks)
        request.chunks = <PyObject *> chunks
        return True

    def add_sync(self, int64_t ticket, int fd):
        cdef Request *request = self.next_request()
        if request is NULL:
            return False
        request.ticket = ticket
        request.fd = fd
        request.is_sync = True
        request.chunks = NULL
        return True

    cdef Request *next_request(self) except? NULL:
        if not self.running:
            raise ValueError("the writer has stopped")
        if self.filled - self.taken == self.ring.slots:
            return NULL
        cdef Request *request = request_at(self.ring, self.filled)
        request.synced_ns = 0
        self.filled += 1
        return request

    def submit(self):
        pthread_mutex_lock(&self.ring.mutex)
        self.ring.submitted = self.filled
        pthread_mutex_unlock(&self.ring.mutex)
        sem_post(&self.ring.work)

    def take(self):
        cdef uint64_t done
        cdef Request *request
        cdef list found = []
        pthread_mutex_lock(&self.ring.mutex)
        self.ring.woken = False
        done = self.ring.done
        pthread_mutex_unlock(&self.ring.mutex)
        while self.taken < done:
            request = request_at(self.ring, self.taken)
            self.taken += 1
            found.append((request.ticket, request.error, request.synced_ns / 1e9))
            if request.chunks is not NULL:
                Py_DECREF(<object> request.chunks)
                request.chunks = NULL
        return found

    def stop(self):
        # A copy of the process has no thread.
        if not self.running or getpid() != self.process:
            return
        pthread_mutex_lock(&self.ring.mutex)
        self.ring.submitted = self.filled
        self.ring.stopping = True
        pthread_mutex_unlock(&self.ring.mutex)
        sem_post(&self.ring.work)
        with nogil:
            pthread_join(self.thread, NULL)
        self.running = False
