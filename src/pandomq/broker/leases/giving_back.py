"""The remaining messages of a lease go back to their places in the queue, marked as redelivered. Sequence and term are
the former ones: a client that got a message from an earlier root, on another broker, can still settle it (`places`).

This counts as a delivery: a message with too many becomes a dead letter instead. Its time has passed meanwhile: a
message that is too old expires at once.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.log.commands import ReturnLeased
from pandomq.chunk_form import MessageRow, decode_rows
from pandomq.limits import LEASE_MOVE_BYTES_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.leases.lease import Lease
    from pandomq.broker.queues.queue import Queue


def give_back(broker: "Broker", lease: "Lease", queue: "Queue", chunk: bytes) -> None:
    """The lease's messages in the chunk, from its first one on; of a large chunk not all."""
    rows = _rows(lease, chunk)
    assert rows and rows[0].offset == lease.first_offset, "the chunk has the first that is left"
    limit = queue.settings.delivery_limit
    messages: list[tuple[int, int, int, bytes, bytes, bytes]] = []
    terms: list[int] = []
    for row, place in zip(rows, lease.places(), strict=False):
        count = place.delivery_count + 1
        # A routing key need not be UTF-8.
        names = (name.decode("utf-8", "surrogateescape") for name in (row.exchange, row.routing_key))
        routing = kernel.routing_of(*names)
        if 0 <= limit < count:
            if queue.settings.dead_letter_exchange is not None:
                message = kernel.Message(routing, row.header, row.body)
                broker.engine.dead.append((queue.kernel, message, kernel.DELIVERY_LIMIT, count))
        else:
            messages.append((place.sequence, place.deadline_ms, count, routing, row.header, row.body))
            terms.append(place.term)
    broker.log(ReturnLeased(lease.vhost, lease.queue, lease.name, rows[-1].offset + 1, messages, terms))


def _rows(lease: "Lease", chunk: bytes) -> list[MessageRow]:
    rows: list[MessageRow] = []
    size_bytes = 0
    for row in decode_rows(chunk):
        if lease.first_offset <= row.offset < lease.end_offset and size_bytes < LEASE_MOVE_BYTES_MAX:
            rows.append(row)
            size_bytes += len(row.body)
    return rows


def reinstate(engine: kernel.Engine, queue: kernel.Queue, command: ReturnLeased) -> None:
    """Applies the command, on every broker alike."""
    # Logs from before terms were noted have none.
    terms = command.terms or [0] * len(command.messages)
    for term, (sequence, deadline_ms, delivery_count, *content) in zip(terms, command.messages, strict=True):
        message = kernel.Message(*content)
        queue.reinstate(message, sequence, term or engine.term, deadline_ms, delivery_count, True)
