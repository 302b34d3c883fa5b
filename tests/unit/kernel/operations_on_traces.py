"""Traces: which queues and sessions have one, and what is taken of them."""

from __future__ import annotations

from typing import Any

from pandomq.trace_form import SAMPLE_WHOLE
from tests.unit.kernel.operations import one, operation
from tests.unit.kernel.world import World


@operation(8)
def trace_queue(world: World, a: int, b: int, c: int) -> None:
    """By one of two traces; or it is no longer."""
    queue = one(world.queues, a)
    if queue is not None:
        queue.trace = None if b % 5 == 0 else trace_of(world, b)
        queue.label = b"queue %d" % queue.owner


@operation(8)
def trace_session(world: World, a: int, b: int, c: int) -> None:
    session = one(world.sessions, a)
    if session is not None:
        session.trace = None if b % 5 == 0 else trace_of(world, b)
        session.label = b"session %d" % session.owner


@operation(6)
def set_trace_time(world: World, a: int, b: int, c: int) -> None:
    world.engine.time_us = world.now_ms * 1000 + a


@operation(8)
def take_trace(world: World, a: int, b: int, c: int) -> Any:
    trace = one(world.traces, a)
    return trace and trace.take()


def trace_of(world: World, number: int) -> Any:
    """One takes everything, the other some of it, and has little room."""
    if not world.traces:
        world.traces += [
            world.kernel.Trace(world.engine, SAMPLE_WHOLE, 1 << 20),
            world.kernel.Trace(world.engine, SAMPLE_WHOLE // 2, 2000),
        ]
    return one(world.traces, number)
