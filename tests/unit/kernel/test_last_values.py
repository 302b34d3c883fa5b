"""Last-value queues with many keys: both twins know the newest message of each, whatever happened."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.support.examples import examples
from tests.unit.kernel.frames import ack, headers, nack, properties, publish
from tests.unit.kernel.world import World

KEYS = 150

Step = tuple[str, list[int]]

PUBLISH = st.tuples(st.just("publish"), st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=80))
SETTLE = st.tuples(st.sampled_from(["ack", "requeue"]), st.lists(st.integers(0, 40), min_size=1, max_size=10))
OTHERS: st.SearchStrategy[Step] = st.sampled_from([("deliver", []), ("purge", []), ("watch", []), ("leave", [])])


def play(kernel: ModuleType, prefetch: int, script: list[Step]) -> Any:
    world = World(kernel)
    publisher, consuming = world.channel(), world.channel()
    queue = world.queue("k", last_value_key=b"key")
    world.consumer(consuming, queue, prefetch=prefetch)
    views = []
    for name, numbers in script:
        tags = consuming.outstanding(0, True)
        match name:
            case "publish":
                data = [
                    publish(b"k", b"%d" % number, properties(table=headers(key=b"%d" % number))) for number in numbers
                ]
                world.feed(publisher.session, b"".join(data))
            case "ack" | "requeue" if tags:
                settled = sorted({tags[number % len(tags)] for number in numbers})
                frames = [ack(tag) if name == "ack" else nack(tag, False, True) for tag in settled]
                world.feed(consuming.session, b"".join(frames))
            case "watch":
                # One that takes without acks, and is asked in turn with the first.
                world.consumer(consuming, queue, no_ack=True)
            case "leave" if queue.consumer_count > 1:
                queue.consumers()[-1].cancel()
            case "deliver":
                world.end_batch()
                consuming.session.take()
            case "purge":
                queue.purge()
            case _:
                pass
        views.append(world.view())
    queue.purge()
    consuming.close(0)
    return [*views, world.view()]


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from([1, 5, 60]), st.lists(st.one_of(PUBLISH, PUBLISH, SETTLE, OTHERS), max_size=14))
def test_both_twins_keep_the_same(plain: ModuleType, fast: ModuleType, prefetch: int, script: list[Step]) -> None:
    assert play(fast, prefetch, script) == play(plain, prefetch, script)


def test_one_message_for_each_of_thousands_of_keys(world: World) -> None:
    channel = world.channel()
    queue = world.queue("k", last_value_key=b"key")
    for turn in range(3):
        data = [
            publish(b"k", b"%d %d" % (turn, number), properties(table=headers(key=b"%d" % number)))
            for number in range(3000)
        ]
        world.feed(channel.session, b"".join(data))
    assert world.ready(queue) == [b"2 %d" % number for number in range(3000)]
    assert queue.dropped == 6000
    assert queue.purge() == 3000
    world.feed(channel.session, publish(b"k", b"again", properties(table=headers(key=b"7"))))
    assert world.ready(queue) == [b"again"]
