"""The stream of traces can be read, and no batch of a term is missing before a later one."""

from __future__ import annotations

from typing import Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.machine import Machine
from pandomq.trace_form import TRACE_STREAM, BadTrace, Events, Kind, decode_events

PROMISE: Final = "traces are complete"
_BEGINS: Final = frozenset((Kind.PUBLISHED, Kind.UNROUTABLE, Kind.CLUSTER))


class TracesWhole(Checker):
    def finished(self, machine: Machine) -> None:
        assert machine.node is not None
        queue = machine.node.broker.state.vhosts["/"].queues.get(TRACE_STREAM)
        chunk = None if queue is None else queue.kernel.open_chunk
        if chunk is None:
            return
        seen: dict[tuple[str, int], int] = {}
        for position in range(chunk.count):
            events = self._decoded(chunk.row(position)[5])
            term = (events.broker, events.term)
            if term in seen and events.number != seen[term] + 1:
                raise BrokenPromise(PROMISE, f"batch {events.number} of {term} comes after {seen[term]}")
            seen[term] = events.number
            if any(row.since_us > 0 and row.kind in _BEGINS for row in events.rows()):
                raise BrokenPromise(PROMISE, f"batch {events.number} of {term} has what is older than itself")

    def _decoded(self, body: bytes) -> Events:
        try:
            return decode_events(body)
        except BadTrace as error:
            raise BrokenPromise(PROMISE, str(error)) from error
