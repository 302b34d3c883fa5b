"""Random methods with random values, in random order: whatever a client says, the broker answers or closes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.limits import SHORT_STRING_BYTES_MAX
from pandomq.methods import METHODS, Method, WireType
from pandomq.properties import Properties
from tests.support.examples import examples
from tests.unit.amqp_values import TABLES
from tests.unit.broker.conversation import World

NAMES = (
    "",
    "q",
    "r",
    "x",
    "amq.direct",
    "amq.topic",
    "amq.headers",
    "amq.rabbitmq.reply-to",
    "amq.rabbitmq.reply-to.y",
)
ARGUMENTS: list[dict[str, Any]] = [
    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q", "x-max-length": 0},
    {"x-dead-letter-exchange": "x", "x-message-ttl": 0, "x-max-priority": 5},
    {"x-delayed-type": "direct", "alternate-exchange": "x"},
    {"x-queue-type": "quorum", "x-delivery-limit": 0},
    {"x-expires": 1, "x-last-value-key": "k", "x-overflow": "reject-publish-dlx"},
]
TYPES = ("direct", "fanout", "topic", "headers", "x-delayed-message", "x-consistent-hash", "x-random", "nonsense")

names = st.sampled_from(NAMES) | st.text(max_size=300).filter(lambda name: len(name.encode()) <= SHORT_STRING_BYTES_MAX)
VALUES: dict[WireType, st.SearchStrategy[Any]] = {
    WireType.BIT: st.booleans(),
    WireType.OCTET: st.integers(0, 255),
    WireType.SHORT: st.integers(0, 3) | st.integers(0, 65535),
    WireType.LONG: st.sampled_from((0, 0, 0, 1, 2**32 - 1)),
    WireType.LONGLONG: st.integers(0, 5) | st.sampled_from((2**63, 2**64 - 1)),
    WireType.SHORT_STRING: names | st.sampled_from(TYPES),
    WireType.LONG_STRING: st.binary(max_size=5),
    WireType.TABLE: st.just({}) | st.sampled_from(ARGUMENTS) | TABLES,
}


def method_of(kind: type[Method]) -> st.SearchStrategy[Method]:
    fields = {field.name: VALUES[field.type] for field in kind.layout if field.name is not None}
    return st.builds(kind, **fields)


# Of connections the broker hears nothing, and publishes come with a content.
SPOKEN = [
    kind
    for kind in METHODS.values()
    if kind.class_id != methods.ConnectionOpen.class_id and not kind.has_content and not kind.__name__.endswith("Ok")
]
properties = st.builds(
    Properties,
    headers=st.none()
    | TABLES
    | st.fixed_dictionaries({"x-delay": st.integers(-1, 5), "CC": st.lists(names, max_size=2)}),
    delivery_mode=st.none() | st.integers(0, 3),
    priority=st.none() | st.integers(0, 255),
    reply_to=st.none() | names,
    expiration=st.none() | st.sampled_from(("0", "1", "x")),
    user_id=st.none() | st.just("guest"),
)
spoken = st.one_of([method_of(kind) for kind in SPOKEN])
published = st.tuples(names, names, st.binary(max_size=3), properties)


@settings(max_examples=examples(150))
@given(st.lists(st.one_of(spoken, spoken, published, st.just(1), st.just("leave")), min_size=5, max_size=60))
def test_invariants_hold_whatever_methods_clients_send(conversation: list[Any]) -> None:
    world = World()
    peer = world.peer()
    for said in conversation:
        if said == "leave":
            peer.leave()
            peer = world.peer()
        elif said == 1:
            world.pass_time(1)
        elif isinstance(said, tuple):
            peer.publish(*said)
        else:
            peer.send(said)
        heard = peer.heard()
        if peer.client in world.closed:
            peer.leave()
            peer = world.peer()
        elif any(isinstance(method, methods.ChannelClose | methods.ChannelCloseOk) for method in heard):
            if 1 in peer.client.channels:
                peer.send(methods.ChannelCloseOk())
            peer.send(methods.ChannelOpen())
            peer.hear()
    peer.leave()
    world.replayed()
    assert len(world.broker.held) == 0
