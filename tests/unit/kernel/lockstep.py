"""Two worlds, one on each twin, that must not be told apart."""

from __future__ import annotations

from types import ModuleType

from pandomq.kernel import constants
from tests.unit.kernel import (
    operations_of_batches,
    operations_on_clients,
    operations_on_pages,
    operations_on_queues,
    operations_on_relays,
    operations_on_streams,
    operations_on_traces,
)
from tests.unit.kernel.operations import OPERATIONS, SETTINGS
from tests.unit.kernel.world import World

Step = tuple[str, int, int, int]

MODULES = (
    operations_of_batches,
    operations_on_clients,
    operations_on_pages,
    operations_on_queues,
    operations_on_relays,
    operations_on_streams,
    operations_on_traces,
)


class Lockstep:
    """Starts with a publisher, a consumer and two queues, so that short scripts already do something."""

    def __init__(self, plain: ModuleType, fast: ModuleType, kind: int = 0) -> None:
        self.plain = World(plain)
        self.fast = World(fast)
        for world in (self.plain, self.fast):
            world.engine.replicated = kind % 2 == 1
            world.channel(mode=constants.CONFIRM)
            queue = world.queue(logged=True, **SETTINGS[kind % len(SETTINGS)])
            world.consumer(world.channel(), queue, prefetch=2)
            world.queue()
            operations_on_traces.trace_queue(world, 0, kind % 7, 0)
            operations_on_traces.trace_session(world, 0, kind % 7, 0)
            if kind % 3 == 0:
                world.bind("fan", world.queue(logged=True, stream=True, chunk_bytes=150))

    def step(self, step: Step) -> None:
        name, a, b, c = step
        act = OPERATIONS[name]
        expected = act(self.plain, a, b, c)
        assert act(self.fast, a, b, c) == expected, step
        self.plain.check()
        # Looking deep would merge what was requeued: that is an operation of its own.
        assert self.fast.glance() == self.plain.glance(), step

    def finish(self) -> None:
        """Everything that is held back comes out, and is the same."""
        for step in (
            ("look", 0, 0, 0),
            ("end_batch", 0, 1, 0),
            ("take_output", 0, 0, 0),
            ("end_batch", 0, 1, 0),
            ("take_output", 0, 0, 0),
            ("take_trace", 0, 0, 0),
            ("take_trace", 1, 0, 0),
            ("look", 0, 0, 0),
        ):
            self.step(step)
        for world in (self.plain, self.fast):
            for session in world.sessions:
                session.close(world.now_ms)
        self.step(("look", 0, 0, 0))
        for world in (self.plain, self.fast):
            for queue in world.queues:
                queue.purge()
        self.step(("end_batch", 0, 1, 0))
        self.step(("look", 0, 0, 0))
        assert self.fast.engine.held_messages == self.fast.engine.held_bytes == 0
        for world in (self.plain, self.fast):
            world.forget_freed()
            assert sorted(world.freed) == sorted(world.paged)
            assert world.engine.ready_bytes == 0
