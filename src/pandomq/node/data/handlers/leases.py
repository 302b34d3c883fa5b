"""Handles requests for leases of queues, at the root. A user that may read a queue may lease it (docs/leases.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pandomq.broker.administration.rights import QUEUE
from pandomq.broker.leases.asks import LeaseAsk, LeaseEnds
from pandomq.node.data.fields import number, text
from pandomq.node.data.refusals import not_now
from pandomq.node.data.rights import demand
from pandomq.node.pressure import LOW_ON_MEMORY

if TYPE_CHECKING:
    from pandomq.broker.leases.lease import LeaseView
    from pandomq.broker.leases.leases import Leases
    from pandomq.data_form import Fields
    from pandomq.node.data.session import DataSession, Responder

NAME_BYTES_MAX: Final = 1024
"""The limit of a requested name; another module decides which names are valid."""


def lease(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    queue = _readable_queue(client, fields)
    messages_max = number(fields, "messages_max")
    if client.services.held_back() not in (None, LOW_ON_MEMORY):
        # The log should not grow now, so nothing more is moved; if memory is short, moving helps.
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


def release(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    queue, name = _readable_queue(client, fields), text(fields, "name", NAME_BYTES_MAX)
    offset = number(fields, "offset")
    vhost, now_ms = client.vhost_name, client.services.now_ms
    _asked(
        client,
        lambda leases: leases.release(vhost, queue, name, offset, lambda view: answer.ok(_fields(view)), now_ms),
    )


def end_lease(client: DataSession, fields: Fields, _payload: bytes, answer: Responder) -> None:
    queue, name = _readable_queue(client, fields), text(fields, "name", NAME_BYTES_MAX)
    vhost, now_ms = client.vhost_name, client.services.now_ms
    _asked(client, lambda leases: leases.end(vhost, queue, name, lambda view: answer.ok({}), now_ms))


def _readable_queue(client: DataSession, fields: Fields) -> str:
    client.services.demand_root(tls=client.tls)
    queue = text(fields, "queue")
    demand(client, fields, QUEUE, queue)
    return queue


def _asked(client: DataSession, ask: Callable[[Leases], None]) -> None:
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
