# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: auto_pickle=False
"""The compiled twin of the kernel; `_fast.pyi` is its contract, and `plain/` is the readable definition.

The files in `fast/` have the names of those in `plain/`, and the same steps in the same order: where the order of two
effects is visible from outside, the plain twin is the reference. Only the data structures differ: messages are in C
arrays, waiting consumers in intrusive linked lists, and outgoing bytes in one growing bytes object.

References: a C array owns the Python objects in it (it counts them); chains and links do not, since their members are
registered, and thereby kept alive, elsewhere.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from collections import OrderedDict, deque

from zlib import crc32 as zlib_crc32

from pandomq.chunk_form import HEAD_BYTES, BadChunk, ChunkHead
from pandomq.chunk_form import check as check_chunk
from pandomq.chunk_form import decode as decode_chunk
from pandomq.chunk_form import encode_head as encode_chunk_head
from pandomq.kernel import faults
from pandomq.kernel.constants import (
    ABSENT,
    CHUNK_AGE_MS,
    CHUNK_BYTES,
    CHUNK_MESSAGES_MAX,
    CHUNK_ROW_BYTES,
    CONFIRM,
    CONFIRMED_BEFORE,
    DELIVERY_LIMIT,
    DROP_HEAD,
    EXPIRED,
    IMMEDIATE,
    MANDATORY,
    MAXLEN,
    MESSAGE_OVERHEAD_BYTES,
    MIRROR_SPAN_MAX,
    NEVER_MS,
    NORMAL,
    OVERSIZED,
    PAGE_BYTES,
    PAGE_MESSAGES,
    PAGES_AHEAD,
    PUBLISH_BITS,
    READ_BURST,
    RECORD_COMMAND,
    RECORD_DEQUEUE,
    RECORD_ENQUEUE,
    REJECT_PUBLISH,
    REJECT_PUBLISH_DEAD_LETTER,
    REJECTED,
    SETTLE,
    SETTLED,
    SETTLE_ROWS_MAX,
    SPECIAL_COPIES,
    SPECIAL_DELAY,
    SPECIAL_EXPIRATION,
    SPECIAL_MALFORMED,
    SPECIAL_PRODUCER,
    SPECIAL_REPLY_TO,
    SPECIAL_USER_ID,
    TRACED_UNCONFIRMED_MAX,
    TRANSACTION,
    PLACE_UNKNOWN,
)
from pandomq.kernel.faults import Content, Frame, ScanFault
from pandomq.kernel.records import QUEUES_PER_RECORD_MAX, VERSION, BadEntry
from pandomq.limits import EXPIRATION_MS_MAX, FIELD_TABLE_DEPTH_MAX
from pandomq.trace_form import EVENT_BYTES, SAMPLE_FACTOR

cdef class Message
cdef class PublishRun
cdef class SettleRun
cdef class DeliveryRun
cdef class Scanner
cdef class Plan
cdef class Routes
cdef class Engine
cdef class Session
cdef class Channel
cdef class Consumer
cdef class Queue
cdef class Page
cdef class PagedLevel
cdef class Chunk
cdef class StreamEnd
cdef class Reader
cdef class Trace

include "fast/constants.pxi"
include "fast/octets.pxi"
include "fast/hashing.pxi"
include "fast/crc.pxi"
include "fast/fields.pxi"
include "fast/copies.pxi"
include "fast/slabs.pxi"
include "fast/message.pxi"
include "fast/chunk.pxi"
include "fast/chunk_seal.pxi"
include "fast/known_routings.pxi"
include "fast/runs.pxi"
include "fast/deliveries.pxi"
include "fast/contents.pxi"
include "fast/arrivals.pxi"
include "fast/settlements.pxi"
include "fast/scanner.pxi"
include "fast/chain.pxi"
include "fast/ring.pxi"
include "fast/ready.pxi"
include "fast/page.pxi"
include "fast/page_form.pxi"
include "fast/level.pxi"
include "fast/last_values.pxi"
include "fast/rotation.pxi"
include "fast/stream.pxi"
include "fast/consumer.pxi"
include "fast/queue_consumers.pxi"
include "fast/queue_exits.pxi"
include "fast/queue_pages.pxi"
include "fast/queue_page_exits.pxi"
include "fast/queue.pxi"
include "fast/queue_get.pxi"
include "fast/window.pxi"
include "fast/early.pxi"
include "fast/confirms.pxi"
include "fast/kept.pxi"
include "fast/unproven.pxi"
include "fast/mirrors.pxi"
include "fast/channel.pxi"
include "fast/garbage.pxi"
include "fast/output.pxi"
include "fast/session.pxi"
include "fast/offset_header.pxi"
include "fast/reader.pxi"
include "fast/routes.pxi"
include "fast/outlook.pxi"
include "fast/relay.pxi"
include "fast/fan_out.pxi"
include "fast/settling.pxi"
include "fast/copies_at_once.pxi"
include "fast/log.pxi"
include "fast/replay.pxi"
include "fast/excerpt.pxi"
include "fast/paging.pxi"
include "fast/willing.pxi"
include "fast/trace.pxi"
include "fast/commits.pxi"
include "fast/engine.pxi"

KIND = "fast"
