"""One message for many queues: each consumer gets what it would get alone, whatever the others are."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import hypothesis
import hypothesis.strategies as st

from tests.support.examples import examples
from tests.unit.kernel.frames import PERSISTENT, properties, publish, read
from tests.unit.kernel.world import World

KINDS = [
    "no_ack",
    "no_ack",
    "no_ack",
    "ack",
    "prefetch",
    "nobody",
    "narrow",
    "paused",
    "closed",
    "logged",
    "two",
    "ttl",
]
SETTINGS: dict[str, dict[str, Any]] = {"ttl": {"ttl_ms": 0}, "two": {"counts_deliveries": True}}
PROPS = [b"\0\0", PERSISTENT, properties(expiration=b"0"), properties(priority=3)]


def subscribe(world: World, kind: str, number: int) -> None:
    queue = world.queue("fan", logged=kind == "logged", **SETTINGS.get(kind, {}))
    session = world.session(frame_max=32 if kind == "narrow" else 4096)
    channel = world.channel(session, 1 + number % 3)
    if kind == "nobody":
        return
    world.consumer(channel, queue, no_ack=kind not in ("ack", "prefetch"), prefetch=2 if kind == "prefetch" else 0)
    if kind == "two":
        world.consumer(world.channel(number=7), queue, no_ack=True)
    elif kind == "paused":
        session.pause()
    elif kind == "closed":
        channel.open = False


@hypothesis.settings(max_examples=examples(150))
@hypothesis.given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=3, max_size=12),
    batches=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=4), max_size=4),
)
def test_same_messages_same_copies(
    plain: ModuleType, fast: ModuleType, kinds: list[str], batches: list[list[tuple[int, int]]]
) -> None:
    worlds = World(plain), World(fast)
    for world in worlds:
        world.channel(mode=1)
        for number, kind in enumerate(kinds):
            subscribe(world, kind, number)
    for batch in batches:
        data = b"".join(publish(b"fan", b"x" * size, PROPS[props]) for props, size in batch)
        seen = []
        for world in worlds:
            world.feed(world.sessions[0], data)
            entry = world.end_batch()
            seen.append((entry, [session.take() for session in world.sessions], world.view()))
        assert seen[0] == seen[1]


def test_copies_differ_in_tags_and_channels_only(world: World) -> None:
    publisher = world.channel()
    channels = [world.channel(number=1 + number % 4) for number in range(40)]
    for channel in channels:
        world.consumer(channel, world.queue("k"), no_ack=True)
    for body in (b"first", b"", b"y" * 3000):
        world.feed(publisher.session, publish(b"k", body, PERSISTENT))
    world.end_batch()
    for number, channel in enumerate(channels):
        events = read(channel.session.take())
        assert [(one.channel, one.consumer, one.tag) for one in events] == [
            (channel.number, b"c%d" % number, tag) for tag in (1, 2, 3)
        ]
        assert [one.body for one in events] == [b"first", b"", b"y" * 3000]
    assert (world.engine.delivered, world.engine.held_messages) == (120, 0)


def test_large_ones_too(world: World) -> None:
    publisher = world.channel(world.session(frame_max=0))
    channels = [world.channel(world.session(frame_max=0)) for _ in range(5)]
    for channel in channels:
        world.consumer(channel, world.queue("k"), no_ack=True)
    world.feed(publisher.session, publish(b"k", b"z" * 100_000))
    world.end_batch()
    assert all(read(channel.session.take())[0].body == b"z" * 100_000 for channel in channels)
