"""Which streams there are, what they hold, and where: everything about them but their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.broker.pattern_syntax import PatternError
from pandomq.broker.patterns import compile_pattern
from pandomq.broker.permissions import Right
from pandomq.node.data import fields as read
from pandomq.node.data import limits
from pandomq.node.data.refusals import Refused, bad_request, not_found
from pandomq.node.data.waiting import Watch

if TYPE_CHECKING:
    from pandomq.broker.streams.stream import Stream
    from pandomq.data_form import Fields
    from pandomq.node.data.client import Answer, DataClient


def find_stream(client: DataClient, fields: Fields) -> Stream:
    """The one that the request names. Raises Refused: 403 without the right to read it, 404 if there is none."""
    name = read.text(fields, "stream", limits.STREAM_NAME_BYTES_MAX)
    vhost = client.vhost
    broker = client.services.broker
    # Who may read a queue may read what is leased of it; that renews the lease.
    leased = broker.leases.queue_of(vhost.name, name)
    queue_name = name if leased is None else leased
    if not client.access.allows(Right.READ, queue_name):
        raise Refused(
            403, f"read access to queue '{queue_name}' in vhost '{vhost.name}' refused for user '{client.user}'"
        )
    queue = (vhost.queues if leased is None else vhost.inner_queues).get(name)
    if queue is None or queue.stream is None:
        raise _no_stream(client, name)
    if leased is not None:
        broker.leases.renew(vhost.name, name, client.services.now_ms)
    return queue.stream


def _no_stream(client: DataClient, name: str) -> Refused:
    what = "is not a stream" if name in client.vhost.queues else "is not there"
    return not_found(f"stream '{name}' in vhost '{client.vhost_name}' {what}")


def streams(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    source = read.text(fields, "pattern", limits.PATTERN_BYTES_MAX)
    try:
        pattern = compile_pattern(f"^({source})$")
    except PatternError as error:
        raise bad_request(f"'pattern' is no regular expression: {error}") from None
    access = client.access
    names = (name for name, queue in client.vhost.queues.items() if queue.stream is not None)
    answer.ok({"streams": sorted(name for name in names if pattern.matches(name) and access.allows(Right.READ, name))})


def range_(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    stream = find_stream(client, fields)
    if "beyond" in fields:
        beyond = read.number(fields, "beyond")
        wait_ms = min(read.number(fields, "wait_ms", default=0), limits.WAIT_MS_MAX)
        if stream.committed_end <= beyond and wait_ms:
            until_ms = client.services.now_ms + wait_ms
            client.services.watches.add(Watch(client, fields, beyond, until_ms, answer))
            return
    say_range(stream, answer)


def say_range(stream: Stream, answer: Answer) -> None:
    answer.ok(
        {
            "first_offset": stream.first_offset,
            "end_offset": stream.committed_end,
            "first_time_us": stream.first_time_us,
            "last_time_us": stream.last_time_us,
            "bytes": stream.size_bytes,
        }
    )


def settle_watch(watch: Watch, over: bool) -> bool:
    """Answers who waits for a stream to grow if it has, or the time is over."""
    try:
        stream = find_stream(watch.client, watch.fields)
    except Refused as refused:
        watch.answer.refuse(refused)
        return True
    if not over and stream.committed_end <= watch.beyond:
        return False
    say_range(stream, watch.answer)
    return True


def offset_at(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    stream, time_us = find_stream(client, fields), read.number(fields, "time_us")
    stream.find_time(time_us, lambda offset: answer.ok({"offset": offset}))


def index(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    stream = find_stream(client, fields)
    first_offset, end_offset = read.number(fields, "first_offset"), read.number(fields, "end_offset")
    rows = stream.chunks(first_offset, end_offset, limits.INDEX_ROWS_MAX)
    said = [
        [row.first_offset, row.last_offset, row.count, row.size_bytes, row.first_time_us, row.last_time_us]
        for row in rows
    ]
    more = len(rows) == limits.INDEX_ROWS_MAX and rows[-1].last_offset + 1 < min(end_offset, stream.committed_end)
    answer.ok({"chunks": said, "more": more})


def store_offset(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    stream = find_stream(client, fields)
    name, offset = read.text(fields, "name"), read.number(fields, "offset")
    services = client.services
    services.demand_root(tls=client.tls)
    services.broker.streams.store_offset(
        client.vhost_name,
        stream.name,
        name,
        offset,
        lambda fault: answer.ok() if fault is None else answer.refuse(fault),
        services.now_ms,
    )


def stored_offsets(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    answer.ok({"offsets": find_stream(client, fields).stored_offsets})
