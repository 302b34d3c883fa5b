"""Brokers send chunks of streams without reading them (ADR 16): the client that reads a damaged chunk detects the
damage."""

from __future__ import annotations

import pytest

from pandomq.chunk_form import BadChunk
from pandomq.data_form import Fields
from pandomq.sim.clients.data_port.data_speaker import DataSpeaker
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.world import World


class Finder(DataSpeaker):
    """Treats the first answer as a damaged chunk."""

    found = 0
    answered_count = 0

    @property
    def content(self) -> bool:
        return bool(self.answered_count)

    def begin(self) -> None:
        self.ask("last_batch", query="q")

    def hear(self, asked: str, fields: Fields, payload: bytes) -> None:
        if not self.found:
            self.found += 1
            raise BadChunk("it is damaged")
        self.answered_count += 1


def served() -> World:
    world = World(1)
    world.machine.start()
    assert world.agenda.run(1_000, lambda: world.machine.serving)
    return world


def test_a_client_that_finds_a_damaged_chunk_asks_again_when_it_was_put_right() -> None:
    world = served()
    machine = world.machine
    file = next(name for name, size in machine.disk.sizes().items() if size)
    content = machine.disk.content(file)
    machine.disk.flip_bit(file, 3)
    world.faults._rot = (machine, file, 3)
    finder = Finder(world.scene, "finder")
    finder.connect()
    assert world.agenda.run(world.agenda.now_ms + 2_000, lambda: finder.answered_count > 0)
    assert machine.disk.content(file)[:1] == content[:1]


def test_a_damaged_chunk_of_a_healthy_disk_breaks_a_promise() -> None:
    world = served()
    finder = Finder(world.scene, "finder")
    finder.connect()
    with pytest.raises(BrokenPromise, match="has sent a damaged chunk"):
        world.agenda.run(world.agenda.now_ms + 2_000)
