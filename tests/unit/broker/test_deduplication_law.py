"""If a client repeats unconfirmed messages in order and under the same numbers, each message is in the queue once,
whichever part of the log is lost at any time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq import methods
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.test_producers import held

STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(1, 4)),
    st.tuples(st.just("publish"), st.integers(1, 4)),
    st.tuples(st.just("commit"), st.integers(0, 3)),
    st.tuples(st.just("reconnect"), st.just(0)),
    st.tuples(st.just("crash"), st.integers(0, 3)),
)


class Publisher:
    def __init__(self, world: World) -> None:
        self.next = 0
        self.unconfirmed: list[int] = []
        self.connect(world)

    def connect(self, world: World) -> None:
        """And send everything again that may be lost."""
        self._peer: Peer = world.peer()
        self._peer.send(methods.ConfirmSelect())
        self._tags: dict[int, int] = {}
        self._send(self.unconfirmed)

    def publish(self, count: int) -> None:
        numbers = list(range(self.next, self.next + count))
        self.next += count
        self.unconfirmed += numbers
        self._send(numbers)

    def _send(self, numbers: list[int]) -> None:
        for number in numbers:
            self._tags[len(self._tags) + 1] = number
            headers = {"x-producer": "p", "x-sequence": number}
            properties = Properties(delivery_mode=2 - number % 2, headers=headers)
            self._peer.say_publish("", ("q", "passing")[number % 5 == 4], b"%d" % number, properties)
        self._peer.flush()
        self.listen()

    def listen(self) -> None:
        for method in self._peer.heard():
            if isinstance(method, methods.BasicAck):
                first = 1 if method.multiple else method.delivery_tag
                done = {self._tags[tag] for tag in range(first, method.delivery_tag + 1)}
                self.unconfirmed = [number for number in self.unconfirmed if number not in done]
            else:
                assert isinstance(method, methods.ConfirmSelectOk), method


def successor(world: World, lost: int, seed: int) -> World:
    """Of what was not committed so many entries are lost, from the end on; the rest was committed after all."""
    count = max(world.committed_index, len(world.entries) - lost)
    other = World(late=True, seed=seed)
    for index, entry in enumerate(world.entries[:count], start=1):
        other.broker.apply(index, 1, entry)
    other.entries = world.entries[:count]
    other.commit()
    return other


@pytest.mark.proves("R25")
@given(st.lists(STEPS, max_size=25), st.booleans())
def test_nothing_is_lost_and_nothing_is_there_twice(steps: list[tuple[str, int]], replicated: bool) -> None:
    world = World()
    world.broker.engine.replicated = replicated
    world.peer().declare("q", durable=True)
    world.peer().declare("passing")
    world.late = True
    publisher = Publisher(world)
    for position, (step, amount) in enumerate(steps):
        if step == "publish":
            publisher.publish(amount)
        elif step == "commit":
            world.commit(max(world.committed_index, len(world.entries) - amount))
            publisher.listen()
        else:
            if step == "crash":
                world = successor(world, amount, position + 2)
                world.broker.engine.replicated = replicated
            publisher.connect(world)
    world.commit()
    publisher.listen()
    assert publisher.unconfirmed == []
    wanted = [number for number in range(publisher.next) if number % 5 != 4]
    in_queue = list(map(int, held(world)))
    if replicated:
        assert in_queue == wanted
    else:
        # Transient messages are lost with their broker, and this law does not cover them.
        assert [number for number in in_queue if number % 2 == 0] == [number for number in wanted if number % 2 == 0]
        assert len(set(in_queue)) == len(in_queue)
