"""Publishes messages that expired, or were rejected, dropped or delivered too often, to their queue's dead-letter
exchange.

A dead letter is a new message with the old body, the headers that `deaths` writes and no expiration. It is enqueued in
the batch in which it died, so one log entry holds its removal and its arrival; if it died by a transaction, it becomes
visible with the transaction. If the exchange is missing or no queue matches, it is dropped.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pandomq import kernel
from pandomq.broker.publishing.copies import routing_keys_of
from pandomq.broker.publishing.publishing import enqueue, route
from pandomq.broker.queues.deaths import REASONS, DeathHistory
from pandomq.broker.queues.queue import Queue
from pandomq.errors import Fault
from pandomq.properties import read_headers

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.vhost import Vhost

Put: TypeAlias = "Callable[[Vhost, kernel.Message, Sequence[kernel.Queue]], object]"
"""Puts a letter into queues."""
Dead: TypeAlias = "Sequence[tuple[kernel.Queue, kernel.Message, int, int]]"

_Letter: TypeAlias = tuple[bytes, bytes, Sequence[kernel.Queue]]
"""Routing, header and queues."""


def publish_dead(broker: "Broker", now_ms: int) -> None:
    """Publishes all messages that the kernel has found dead so far. Some may push others out: those are dead for the
    next call."""
    dead = list(broker.engine.dead)
    broker.engine.dead.clear()
    send_dead(broker, dead, lambda vhost, letter, queues: enqueue(broker, None, vhost, letter, queues), now_ms)


def send_dead(broker: "Broker", dead: Dead, put: Put, now_ms: int) -> None:
    make = kernel.Message
    # Messages that die together often differ only in their bodies.
    letters: dict[tuple[kernel.Queue, int, bytes, bytes], _Letter | None] = {}
    for place, message, reason, _delivery_count in dead:
        alike = (place, reason, message.routing, message.header)
        known = letters.get(alike)
        if known is None:
            letters[alike] = _send(broker, place.owner, message, REASONS[reason], put, now_ms)
        else:
            routing, header, queues = known
            put(place.owner.vhost, make(routing, header, message.body), queues)


def _send(
    broker: "Broker", queue: Queue, message: kernel.Message, reason: str, put: Put, now_ms: int
) -> _Letter | None:
    """Returns the parts shared with messages like this one, if all of them take the same route."""
    settings = queue.settings
    vhost = queue.vhost
    assert settings.dead_letter_exchange is not None
    exchange = vhost.router.exchanges.get(settings.dead_letter_exchange)
    if exchange is None:
        return None
    own_key = settings.dead_letter_key
    keys = _copied_keys(message) if message.special & kernel.SPECIAL_COPIES else None
    header, history = broker.deaths.record(
        message, queue.name, reason, keys, now_ms // 1000, keys is not None and own_key is not None
    )
    key = message.routing_key if own_key is None else own_key
    letter = kernel.Message(kernel.routing_of(exchange.name, key), header, message.body)
    keys = keys if own_key is None else None
    plan = vhost.router.plan(exchange, key) if keys is None else None
    queues = route(vhost, exchange, letter, keys) if plan is None else plan.queues
    if reason != "rejected":
        queues = [place for place in queues if not _is_cycle(place, history)]
    put(vhost, letter, queues)
    return None if plan is None else (letter.routing, header, queues)


def _is_cycle(place: kernel.Queue, history: DeathHistory) -> bool:
    return isinstance(place.owner, Queue) and history.cycles_through(place.owner.name)


def _copied_keys(message: kernel.Message) -> list[str] | None:
    # A publisher's CC was checked; here it can only be wrong in a message that another version of the broker accepted.
    try:
        return routing_keys_of(message, read_headers(message.header))
    except Fault:
        return None
