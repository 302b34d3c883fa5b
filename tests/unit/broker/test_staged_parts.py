"""Parts of staged batches that left memory: the root fetches them from its disk before it publishes them."""

from __future__ import annotations

from tests.unit.broker.staging_scene import COMMITTED, STAGED, frames, prepared
from tests.unit.broker.test_producers import held


def test_a_part_that_left_memory_again_while_publishes_were_held_back_is_fetched_again() -> None:
    world, sink = prepared()
    engine, held_replies = world.broker.engine, world.broker.held
    engine.paging_bytes = 1
    sink.stage(frames("1" * 100_000))
    ((_, blob),) = engine.page_out(1_000_000)
    sink.commit((0, "a", 1))
    # The part is asked for; it arrives while publishes are held back, and the memory is wanted for others.
    (page,) = engine.wanted
    engine.wanted.clear()
    held_replies.let_publishes_wait(wait=True)
    engine.loaded(page, blob)
    world.run([])
    ((_, blob),) = engine.page_out(1_000_000)
    assert not world.broker.active
    held_replies.let_publishes_wait(wait=False)
    assert world.broker.active
    world.run([])
    assert not world.broker.active, "the part is asked for once"
    (page,) = engine.wanted
    engine.loaded(page, blob)
    world.run([])
    assert sink.heard() == [STAGED, COMMITTED]
    assert held(world) == [b"1" * 100_000]
