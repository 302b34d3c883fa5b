"""The broker against a definition that fits a screen: lists of messages, and who has which of them."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pandomq import methods
from tests.support.examples import examples
from tests.unit.broker.conversation import World

QUEUES = ("a", "b")
CHANNELS = (1, 2, 3)
queues, channels = st.sampled_from(QUEUES), st.sampled_from(CHANNELS)


class Held(NamedTuple):
    queue: str
    sequence: int
    body: bytes


class BrokerMachine(RuleBasedStateMachine):
    """One client with several channels, all of them getting from the same queues."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.peer = self.world.connect()
        for number in CHANNELS:
            self.peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=number)
        for name in QUEUES:
            self.peer.declare(name)
        self.sequence = 0
        self.ready: dict[str, dict[int, tuple[bytes, bool]]] = {name: {} for name in QUEUES}
        self.held: dict[int, dict[int, Held]] = {number: {} for number in CHANNELS}
        self.tags = dict.fromkeys(CHANNELS, 0)

    def give_back(self, held: list[Held]) -> None:
        for queue, sequence, body in held:
            self.ready[queue][sequence] = (body, True)

    @rule(queue=queues, channel=channels, body=st.binary(max_size=3), count=st.integers(1, 3))
    def publish(self, queue: str, channel: int, body: bytes, count: int) -> None:
        for _ in range(count):
            self.peer.say_publish("", queue, body, channel=channel)
            self.sequence += 1
            self.ready[queue][self.sequence] = (body, False)
        self.peer.flush()
        assert self.peer.hear() == []

    @rule(queue=queues, channel=channels, no_ack=st.booleans())
    def get(self, queue: str, channel: int, no_ack: bool) -> None:
        (answer,) = self.peer.send(methods.BasicGet(queue, no_ack), channel=channel).hear()
        if not self.ready[queue]:
            assert answer.method == methods.BasicGetEmpty()
            return
        first = min(self.ready[queue])
        body, redelivered = self.ready[queue].pop(first)
        self.tags[channel] += 1
        left = len(self.ready[queue])
        assert answer.method == methods.BasicGetOk(self.tags[channel], redelivered, "", queue, left)
        assert answer.body == body
        if not no_ack:
            self.held[channel][self.tags[channel]] = Held(queue, first, body)

    @rule(
        channel=channels,
        pick=st.integers(0, 5),
        multiple=st.booleans(),
        outcome=st.sampled_from(("ack", "drop", "requeue")),
    )
    def settle(self, channel: int, pick: int, multiple: bool, outcome: str) -> None:
        held = self.held[channel]
        if not held:
            return
        tag = sorted(held)[pick % len(held)]
        tags = [known for known in held if known == tag or (multiple and known < tag)]
        settled = [held.pop(known) for known in tags]
        if outcome == "ack":
            self.peer.send(methods.BasicAck(tag, multiple), channel=channel)
        else:
            self.peer.send(methods.BasicNack(tag, multiple, outcome == "requeue"), channel=channel)
        if outcome == "requeue":
            self.give_back(settled)
        assert self.peer.hear() == []

    @rule(channel=channels)
    def recover(self, channel: int) -> None:
        self.peer.call(methods.BasicRecover(True), expect=methods.BasicRecoverOk, channel=channel)
        self.give_back(list(self.held[channel].values()))
        self.held[channel].clear()

    @rule(channel=channels, by_fault=st.booleans())
    def close(self, channel: int, by_fault: bool) -> None:
        if by_fault:
            self.peer.refused(methods.BasicGet("missing"), channel=channel)
        else:
            self.peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk, channel=channel)
            self.peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=channel)
        self.give_back(list(self.held[channel].values()))
        self.held[channel].clear()
        self.tags[channel] = 0

    @rule(queue=queues)
    def purge(self, queue: str) -> None:
        answer = self.peer.call(methods.QueuePurge(queue), expect=methods.QueuePurgeOk)
        assert answer.message_count == len(self.ready[queue])
        self.ready[queue].clear()

    @rule(queue=queues)
    @precondition(lambda self: self.sequence)
    def delete_and_declare(self, queue: str) -> None:
        answer = self.peer.call(methods.QueueDelete(queue), expect=methods.QueueDeleteOk)
        assert answer.message_count == len(self.ready[queue])
        self.peer.declare(queue)
        self.ready[queue].clear()
        # Unacked messages of the old queue can be settled, but do not return to a queue.
        for number, held in self.held.items():
            self.held[number] = {
                tag: it._replace(queue="gone") if it.queue == queue else it for tag, it in held.items()
            }
        self.ready["gone"] = {}

    @invariant()
    def counts_agree(self) -> None:
        for name in QUEUES:
            assert self.peer.counts(name) == (len(self.ready[name]), 0)
        alive = [it for held in self.held.values() for it in held.values() if it.queue != "gone"]
        queues = self.world.broker.state.vhosts["/"].queues
        assert sum(queues[name].kernel.unacked_count for name in QUEUES) == len(alive)


BrokerMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestBroker = BrokerMachine.TestCase
