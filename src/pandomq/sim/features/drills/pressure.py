"""A broker that runs out of memory, or whose disk is nearly full, without any other fault.

memory   Publishers of that broker are blocked. Consumers continue. When there is memory again all publishers are
         unblocked, and receive their confirms.
disk     A root whose disk is nearly full hands over, and publishers continue with the next one. A backup whose disk is
         nearly full still follows, and no client waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.limits import KIB
from pandomq.sim.clients.drill_clients import SilentConsumer
from pandomq.sim.features.drills.drill import Awaited, Drill

if TYPE_CHECKING:
    from pandomq.sim.clients.client import SimulatedClient
    from pandomq.sim.machine import Machine
    from pandomq.sim.world import World

NO_MEMORY: Final = -1
"""A watermark that is always exceeded."""
ROOM_BYTES: Final = 60 * KIB
"""Less than the free space that the journals of the world require, and enough to continue writing for a while."""
NOTICED_MS: Final = 4_000
MANY: Final = 12
DISK_NODES_MIN: Final = 3


class PressureFeature(Drill):
    name = "pressure"
    chance = 0.3
    promise = "one broker under pressure"

    def __init__(self, world: World, random: Random) -> None:
        super().__init__(world, random)
        self.consumer = SilentConsumer(world.scene, "consumer-of-pressure", self.kind)

    def clients(self) -> Sequence[SimulatedClient]:
        return (self.prober, self.consumer)

    def course(self) -> Iterator[Awaited]:
        yield self.is_calm
        yield from self._memory()
        yield self.is_calm
        if len(self.members()) >= DISK_NODES_MIN:
            yield from self._disk(self.machine_of(self.random.choice([self.root.name, *self.backups()])))

    def is_calm(self) -> bool:
        if len(self.world.machines) > 1:
            return super().is_calm()
        return self.root.serving and self.prober.content

    # Memory.

    def _set_mark(self, machine: Machine, memory_bytes_max: int | None) -> None:
        assert machine.node is not None
        settings = machine.settings
        if memory_bytes_max is not None:
            settings = msgspec.structs.replace(settings, memory_bytes_max=memory_bytes_max)
        machine.node.change_settings(settings)
        machine.wake()

    def _memory(self) -> Iterator[Awaited]:
        yield self.confirms(MANY, "before that")
        yield self.is_calm
        cable = self.prober.cable
        machine = self.root if cable is None else cable.machine
        if cable is None or machine is not self.root or not self.prober.ready:
            # The client has lost its connection, or was redirected by a broker that was root before.
            return
        self.say(f"{machine.name} has no memory left")
        self._set_mark(machine, NO_MEMORY)
        node = machine.node

        def is_over() -> bool:
            """A broker that restarts its state after an exception has the memory of its settings again."""
            return machine.node is not node

        text = "a publisher hears that it has to wait"
        yield self.within(NOTICED_MS, text, lambda: is_over() or self._is_held_back())
        text = "consumers empty their queue meanwhile"
        yield self.within(NOTICED_MS, text, lambda: is_over() or self._is_empty())
        if is_over():
            return
        self.say(f"{machine.name} has memory again")
        self._set_mark(machine, None)
        yield self.within(NOTICED_MS, "all publishers go on", self._goes_on)

    def _is_held_back(self) -> bool:
        """Publishers are blocked when they publish, and not before."""
        if self.prober.content and not self.prober.blocked:
            self.prober.ask(1)
        return self.prober.blocked

    def _is_empty(self) -> bool:
        assert self.root.node is not None
        queue = self.root.node.broker.state.vhosts["/"].queues.get(self.kind.name)
        return queue is not None and not queue.kernel.ready_count

    def _goes_on(self) -> bool:
        return self.prober.content and not any(client.blocked for client in self.world.clients)

    # Disk.

    def _is_on_disk(self, machine: Machine) -> bool:
        """Whether the disk has the whole log. When it becomes nearly full, pending writes could exceed the remaining
        space, which is for later writes."""
        replica = machine.replica
        return replica is not None and replica.view().synced_index >= self.view.last_index

    def _disk(self, machine: Machine) -> Iterator[Awaited]:
        yield lambda: self._is_on_disk(machine)
        was_root = machine is self.root
        others = [name for name in self.members() if name != machine.name]
        capacity_bytes = machine.disk.capacity_bytes
        self.say(f"the disk of {machine.name} is nearly full")
        yield self.within(NOTICED_MS, "the broker notices", lambda: _fills(machine))
        if was_root:
            # A snapshot may make room before the disks of the others are close enough for a hand-over.
            patience_ms = self.lag_ms + NOTICED_MS
            text = "another broker is root, or the disk has room again"
            yield self.within(patience_ms, text, lambda: any(map(self.is_root, others)) or not _is_low(machine))
        yield self.confirms(3, f"while the disk of {machine.name} is nearly full")
        yield self.in_sync(NOTICED_MS)
        machine.disk.capacity_bytes = capacity_bytes
        yield self.within(NOTICED_MS, "the broker notices that there is room", lambda: not _is_low(machine))


def _fills(machine: Machine) -> bool:
    """Returns whether the broker has noticed that its disk is nearly full; until then, fills the space that the broker
    has freed."""
    if not _is_low(machine):
        machine.disk.capacity_bytes = machine.disk.used_bytes + ROOM_BYTES
    return _is_low(machine)


def _is_low(machine: Machine) -> bool:
    disk = None if machine.node is None else machine.node._disk
    return disk is not None and disk._full_disk.low
