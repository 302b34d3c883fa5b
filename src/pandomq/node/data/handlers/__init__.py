"""What can be asked of the data port, by name. A handler is called from within a step, once the client is known and for
one request of it at a time.

It raises Refused, or a Fault of the broker's, if it will not do what was asked. Otherwise it sees to it that the answer
is given once, now or from within a later step: `answer.ok(fields, parts)`, `answer.refuse(…)`.
`client.services` is what it works with; `client.services.demand_root(tls=client.tls)` is for what only the root does.
The client may ask again for what it was not answered, after its connection was lost, or a root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq.data_form import Fields
from pandomq.node.data.client import Answer, DataClient
from pandomq.node.data.handlers import leases, reading, staging, streams

Handler = Callable[[DataClient, Fields, bytes, Answer], None]

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
