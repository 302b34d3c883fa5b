"""The requests of the data port, by name. A handler is called from within a step, once the client is known and for one
request of it at a time.

It raises Refused, or a Fault of the broker's, to refuse the request. Otherwise it gives the answer exactly once, now or
from within a later step: `answer.ok(fields, parts)`, `answer.refuse(…)`. `client.services` is what it works with;
`client.services.demand_root(tls=client.tls)` is for requests that only the root handles. The client may repeat an
unanswered request after its connection, or a root, was lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq.data_form import Fields
from pandomq.node.data.handlers import leases, reading, staging, streams
from pandomq.node.data.session import DataSession, Responder

Handler = Callable[[DataSession, Fields, bytes, Responder], None]

HANDLERS: Final[dict[str, Handler]] = {
    "streams": streams.streams,
    "range": streams.range_,
    "offset_at": streams.offset_at,
    "index": streams.index,
    "read": reading.read_,
    "store_offset": streams.store_offset,
    "stored_offsets": streams.stored_offsets,
    "stage": staging.stage,
    "commit": staging.commit,
    "drop": staging.drop,
    "last_batch": staging.last_batch,
    "lease": leases.lease,
    "release": leases.release,
    "end_lease": leases.end_lease,
}
