"""The headers of a dead letter: x-death, x-first-death-*, x-last-death-*, as RabbitMQ 4 writes them.

A message that died several times has one record for each (queue, reason), the latest first, with a count. Records are
read from and written to the message's own headers, so they survive whatever the message survives. The headers that a
death adds are called its *block* here; it is put at the end of the table, and messages that die in the same way share
one. Like RabbitMQ 4, the broker ignores an x-death that a client made up: everything that is not exactly a block that
the broker made is replaced.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pandomq import kernel
from pandomq.broker.field_text import name_of
from pandomq.broker.publishing.content_header import Spans, entries_of, spans_of, with_headers
from pandomq.fieldtable import FieldTable, OctetString, Timestamp, encode_table
from pandomq.properties import read_headers

REASONS: Final = {
    kernel.EXPIRED: "expired",
    kernel.REJECTED: "rejected",
    kernel.MAXLEN: "maxlen",
    kernel.DELIVERY_LIMIT: "delivery_limit",
}
BLOCKS_CACHED_MAX: Final = 4096

_FIRST: Final = ("x-first-death-reason", "x-first-death-queue", "x-first-death-exchange")
_LAST: Final = ("x-last-death-reason", "x-last-death-queue", "x-last-death-exchange")
_X_DEATH: Final = b"\x07x-death"


class Death(NamedTuple):
    queue: str
    reason: str
    times: int
    exchange: str
    routing_keys: tuple[str, ...]
    time_s: int
    """The time of the first of these deaths."""
    expiration: str | None
    """The message's own expiration, which it lost by dying."""


class DeathHistory(NamedTuple):
    """The deaths of one message, the latest first."""

    deaths: tuple[Death, ...]
    first: tuple[str, ...]
    """Reason, queue and exchange of the first death."""
    block: bytes
    """The encoded headers about death; they follow a table's other entries."""

    def cycles_through(self, queue: str) -> bool:
        """The message was in this queue before, and since then nobody has rejected it: by itself it would cycle for
        ever."""
        for death in self.deaths:
            if death.reason == "rejected":
                return False
            if death.queue == queue:
                return True
        return False


class DeathRegister:
    """Writes death headers; remembers the blocks it made, since messages tend to die in the same way."""

    __slots__ = ("_by_block", "_made")

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], DeathHistory] = {}
        self._by_block: dict[bytes, DeathHistory] = {}

    def record(
        self,
        message: kernel.Message,
        queue: str,
        reason: str,
        routing_keys: Sequence[str] | None,
        now_s: int,
        drop_copies: bool,
    ) -> tuple[bytes, DeathHistory]:
        """The message's new content header, without expiration, and its history with this death.

        `routing_keys` is given if there are more than the message's own; `drop_copies` removes the CC header.
        """
        header = message.header
        spans = spans_of(header)
        raw = message.find_header(b"x-death")
        if drop_copies or (raw is not None and self._known_tail(header, spans, raw) is None):
            others, before = _split(read_headers(header), entries_of(header, spans), drop_copies)
        elif raw is None:
            others, before = entries_of(header, spans), None
        else:
            before = self._known_tail(header, spans, raw)
            assert before is not None
            others = header[spans.headers_start + 4 : spans.headers_end - len(before.block)]
        keys = (message.routing, tuple(routing_keys)) if routing_keys else message.routing
        history = self._made.get((before and before.block, queue, reason, keys, message.expiration_ms, now_s))
        if history is None:
            history = self._add(before, message, queue, reason, routing_keys, now_s)
            self._made[before and before.block, queue, reason, keys, message.expiration_ms, now_s] = history
        return with_headers(header, spans, others + history.block, keep_expiration=False), history

    def _known_tail(self, header: bytes, spans: Spans, raw: bytes) -> DeathHistory | None:
        # The block at the end of the headers, if it is one of ours. The entry's bytes must not occur twice, or it
        # could be a string of the publisher's that merely looks like it.
        entry = _X_DEATH + raw
        if header.count(entry, spans.headers_start, spans.headers_end) != 1:
            return None
        return self._by_block.get(header[header.index(entry, spans.headers_start) : spans.headers_end])

    def _add(
        self,
        before: DeathHistory | None,
        message: kernel.Message,
        queue: str,
        reason: str,
        routing_keys: Sequence[str] | None,
        now_s: int,
    ) -> DeathHistory:
        exchange = message.exchange
        deaths = before.deaths if before else ()
        known = next((death for death in deaths if death.queue == queue and death.reason == reason), None)
        if known is not None:
            death = known._replace(times=known.times + 1)
        else:
            expiration = None if message.expiration_ms < 0 else str(message.expiration_ms)
            keys = tuple(routing_keys or (message.routing_key,))
            death = Death(queue, reason, 1, exchange, keys, now_s, expiration)
        first = before.first if before else (reason, queue, exchange)
        history = _written(
            (death, *(other for other in deaths if other is not known)), first, (reason, queue, exchange)
        )
        if len(self._made) >= BLOCKS_CACHED_MAX:
            self._made.clear()
            self._by_block.clear()
        self._by_block[history.block] = history
        return history


def _written(deaths: tuple[Death, ...], first: tuple[str, ...], last: tuple[str, ...]) -> DeathHistory:
    table: FieldTable = {"x-death": [_table(death) for death in deaths]}
    table.update(zip(_FIRST, first, strict=True))
    table.update(zip(_LAST, last, strict=True))
    return DeathHistory(deaths, first, encode_table(table)[4:])


def _table(death: Death) -> FieldTable:
    table: FieldTable = {} if death.expiration is None else {"original-expiration": death.expiration}
    table["count"] = death.times
    table["reason"] = death.reason
    table["queue"] = death.queue
    table["time"] = Timestamp(death.time_s)
    table["exchange"] = death.exchange
    table["routing-keys"] = list(death.routing_keys)
    return table


def _split(headers: FieldTable, entries: bytes, drop_copies: bool) -> tuple[bytes, DeathHistory | None]:
    # Returns the headers without those about death, encoded, and their content about death if it is to be believed.
    raw = headers.pop("x-death", None)
    deaths = tuple(filter(None, map(_read, raw if isinstance(raw, list) else ())))
    first, last = (tuple(headers.pop(name, None) for name in names) for names in (_FIRST, _LAST))
    if drop_copies:
        headers.pop("CC", None)
    others = encode_table(headers)[4:]
    if not deaths or not all(isinstance(name, str) for name in (*first, *last)):
        return others, None
    history = _written(deaths, first, last)
    return others, history if entries.endswith(history.block) else None


def _read(table: Any) -> Death | None:
    if not isinstance(table, dict):
        return None
    queue, reason, count = table.get("queue"), table.get("reason"), table.get("count", 1)
    exchange, keys, time_s = table.get("exchange", ""), table.get("routing-keys", []), table.get("time", 0)
    expiration = table.get("original-expiration")
    if not (
        isinstance(queue, str) and isinstance(reason, str) and isinstance(exchange, str) and isinstance(keys, list)
    ):
        return None
    if not (isinstance(count, int) and isinstance(time_s, int)):
        return None
    names = tuple(name_of(key) for key in keys if isinstance(key, str | OctetString))
    in_range = 0 <= count < 2**62 and 0 <= time_s < 2**63
    kept = expiration if isinstance(expiration, str) else None
    return Death(queue, reason, int(count), exchange, names, int(time_s), kept) if in_range else None
