"""Bugs that show only if a broker runs out of memory or disk space without any other fault."""

from __future__ import annotations

from typing import Final

from pandomq.node.alarms import MESSAGE_OVERHEAD_BYTES, MemoryAlarm
from pandomq.node.log.full_disk import FullDisk
from pandomq.node.pressure import LOW_ON_MEMORY, Pressure
from tests.sim.planted.planted_bug import Patch, PlantedBug

NODES: Final = 3


def _keep_alarm(patch: Patch) -> None:
    def update(alarm: MemoryAlarm, held_bytes: int, held_messages: int) -> bool:
        before = alarm.raised
        alarm.raised = before or held_bytes + held_messages * MESSAGE_OVERHEAD_BYTES > alarm.mark_bytes
        return alarm.raised is not before

    patch.set(MemoryAlarm, "update", update)


def _hold_everybody_back(patch: Patch) -> None:
    watch = Pressure.watch

    def hold_back(pressure: Pressure) -> None:
        watch(pressure)
        if pressure.alarm.raised:
            for link in pressure._links.present:
                if link.client is not None and not link.blocked:
                    pressure._links.block(link, LOW_ON_MEMORY)

    patch.set(Pressure, "watch", hold_back)


def _stay_with_full_disk(patch: Patch) -> None:
    patch.set(FullDisk, "tick", lambda disk, monotonic_ms: None)


PLANTED_BUGS: Final = (
    PlantedBug("memory-alarm-stays", "The broker never clears a memory alarm.", _keep_alarm),
    PlantedBug(
        "memory-alarm-for-all", "The memory alarm blocks the connections of consumers, too.", _hold_everybody_back
    ),
    PlantedBug("full-root-stays", "A root whose disk is nearly full does not hand over.", _stay_with_full_disk, NODES),
)
