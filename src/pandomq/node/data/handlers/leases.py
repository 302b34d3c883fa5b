"""Leases of queues: what the root is asked about them. Whoever may read the queue may lease it; docs/leases.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq import data_form
from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds
from pandomq.broker.permissions import Right
from pandomq.node.data.fields import number, text
from pandomq.node.data.refusals import Refused, not_now
from pandomq.node.pressure import LOW_ON_MEMORY

if TYPE_CHECKING:
    from pandomq.broker.leases.lease import LeaseView
    from pandomq.broker.leases.leases import Leases
    from pandomq.data_form import Fields
    from pandomq.node.data.client import Answer, DataClient

NAME_BYTES_MAX: Final = 1024
"""Of what is asked for; which names there can be is decided elsewhere."""


def lease(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    queue = _readable_queue(client, fields)
    messages_max = number(fields, "messages_max")
    if client.services.held_back() not in (None, LOW_ON_MEMORY):
        # The log should not grow now, so nothing more is moved; if it is memory that is short, moving helps.
        messages_max = 0
    ask = LeaseAsk(
        client.vhost_name,
        queue,
        text(fields, "name", NAME_BYTES_MAX),
        client.user,
        messages_max,
        number(fields, "bytes_max"),
        number(fields, "timeout_ms"),
    )
    now_ms = client.services.now_ms
    _asked(client, lambda leases: leases.lease(ask, lambda view: answer.ok(_fields(view)), now_ms))


def release(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    queue, name = _readable_queue(client, fields), text(fields, "name", NAME_BYTES_MAX)
    offset = number(fields, "offset")
    vhost, now_ms = client.vhost_name, client.services.now_ms
    _asked(
        client,
        lambda leases: leases.release(vhost, queue, name, offset, lambda view: answer.ok(_fields(view)), now_ms),
    )


def end_lease(client: DataClient, fields: Fields, _payload: bytes, answer: Answer) -> None:
    queue, name = _readable_queue(client, fields), text(fields, "name", NAME_BYTES_MAX)
    vhost, now_ms = client.vhost_name, client.services.now_ms
    _asked(client, lambda leases: leases.end(vhost, queue, name, lambda view: answer.ok({}), now_ms))


def _readable_queue(client: DataClient, fields: Fields) -> str:
    client.services.demand_root(tls=client.tls)
    queue = text(fields, "queue")
    if not client.access.allows(Right.READ, queue):
        where = f"queue '{queue}' in vhost '{client.vhost_name}'"
        raise Refused(data_form.ACCESS_REFUSED, f"read access to {where} refused for user '{client.user}'")
    return queue


def _asked(client: DataClient, ask: Callable[[Leases], None]) -> None:
    try:
        ask(client.services.broker.leases)
    except LeaseEnds as ends:
        raise not_now(str(ends)) from ends


def _fields(view: LeaseView) -> Fields:
    return {
        "stream": view.stream,
        "first_offset": view.first_offset,
        "end_offset": view.end_offset,
        "more": view.more,
    }
