"""Answers which streams exist, what they hold, and where: everything about them except their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.broker.administration.pattern_syntax import PatternError
from pandomq.broker.administration.patterns import compile_pattern
from pandomq.broker.administration.rights import QUEUE
from pandomq.node.data import fields as read
from pandomq.node.data import limits
from pandomq.node.data.refusals import RequestRefused, bad_request, not_found
from pandomq.node.data.rights import allows, demand
from pandomq.node.data.waiting import WaitingRead

if TYPE_CHECKING:
    from pandomq.broker.streams.stream import Stream
    from pandomq.data_form import Fields
    from pandomq.node.data.session import DataSession, Responder


def find_stream(client: DataSession, fields: Fields) -> Stream:
    """The stream that the request names. Raises Refused: 403 without the right to read it, 404 if there is none."""
    name = read.text(fields, "stream", limits.STREAM_NAME_BYTES_MAX)
    vhost = client.vhost
    broker = client.services.broker
    # A user that may read a queue may read what is leased from it; reading renews the lease.
    leased = broker.leases.queue_of(vhost.name, name)
    queue_name = name if leased is None else leased
    demand(client, fields, QUEUE, queue_name)
    queue = (vhost.queues if leased is None else vhost.inner_queues).get(name)
    if queue is None or queue.stream is None:
        raise _no_stream(client, name)
    if leased is not None:
        broker.leases.renew(vhost.name, name, client.services.now_ms)
    return queue.stream


def _no_stream(client: DataSession, name: str) -> RequestRefused:
    what = "is not a stream" if name in client.vhost.queues else "does not exist"
    return not_found(f"stream '{name}' in vhost '{client.vhost_name}' {what}")


def streams(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    source = read.text(fields, "pattern", limits.PATTERN_BYTES_MAX)
    try:
        pattern = compile_pattern(f"^({source})$")
    except PatternError as error:
        raise bad_request(f"'pattern' is not a valid regular expression: {error}") from None
    names = (name for name, queue in client.vhost.queues.items() if queue.stream is not None)
    answer.ok(
        {"streams": sorted(name for name in names if pattern.matches(name) and allows(client, fields, QUEUE, name))}
    )


def range_(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    stream = find_stream(client, fields)
    if "beyond" in fields:
        beyond = read.number(fields, "beyond")
        wait_ms = min(read.number(fields, "wait_ms", default=0), limits.WAIT_MS_MAX)
        if stream.committed_end <= beyond and wait_ms:
            until_ms = client.services.now_ms + wait_ms
            client.services.watches.add(WaitingRead(client, fields, beyond, until_ms, answer))
            return
    say_range(stream, answer)


def say_range(stream: Stream, answer: Responder) -> None:
    answer.ok(
        {
            "first_offset": stream.first_offset,
            "end_offset": stream.committed_end,
            "first_time_us": stream.first_time_us,
            "last_time_us": stream.last_time_us,
            "bytes": stream.size_bytes,
        }
    )


def settle_watch(watch: WaitingRead, over: bool) -> bool:
    """Answers a client that waits for a stream to grow if it has, or the time is over."""
    try:
        stream = find_stream(watch.client, watch.fields)
    except RequestRefused as refused:
        watch.answer.refuse(refused)
        return True
    if not over and stream.committed_end <= watch.beyond:
        return False
    say_range(stream, watch.answer)
    return True


def offset_at(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    stream, time_us = find_stream(client, fields), read.number(fields, "time_us")
    stream.find_time(time_us, lambda offset: answer.ok({"offset": offset}))


def index(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    stream = find_stream(client, fields)
    first_offset, end_offset = read.number(fields, "first_offset"), read.number(fields, "end_offset")
    rows = stream.chunks(first_offset, end_offset, limits.INDEX_ROWS_MAX)
    said = [
        [row.first_offset, row.last_offset, row.count, row.size_bytes, row.first_time_us, row.last_time_us]
        for row in rows
    ]
    more = len(rows) == limits.INDEX_ROWS_MAX and rows[-1].last_offset + 1 < min(end_offset, stream.committed_end)
    answer.ok({"chunks": said, "more": more})


def store_offset(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    stream = find_stream(client, fields)
    name, offset = read.text(fields, "name"), read.number(fields, "offset")
    services = client.services
    services.demand_root(tls=client.tls)
    services.broker.streams.store_offset(
        client.vhost_name,
        stream.name,
        client.user,
        name,
        offset,
        lambda fault: answer.ok() if fault is None else answer.refuse(fault),
        services.now_ms,
    )


def stored_offsets(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    answer.ok({"offsets": find_stream(client, fields).stored_offsets})
