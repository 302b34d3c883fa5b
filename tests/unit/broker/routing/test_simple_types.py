"""Direct, fanout, random and the default exchange."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker.exchanges.catalogue import TRACE_EXCHANGE, TYPES, predeclared
from pandomq.broker.exchanges.exchange import ExchangeTraits
from pandomq.broker.exchanges.random import RandomExchange
from tests.unit.broker.routing.topology import binding, exchange, mailboxes

BOXES = mailboxes(("q0", "q1", "q2"))
KEYS = st.sampled_from(["", "a", "b"])
# The same destination under one key but with other arguments is another binding.
BINDINGS = st.lists(
    st.tuples(st.sampled_from(sorted(BOXES)), KEYS, st.sampled_from([{}, {"n": 1}, {"n": 2}])), max_size=20
)


@pytest.mark.parametrize("type_name", ["direct", "fanout"])
@given(steps=st.lists(st.tuples(st.booleans(), BINDINGS), max_size=5))
def test_a_binding_holds_until_it_goes(
    type_name: str, steps: list[tuple[bool, list[tuple[str, str, dict[str, int]]]]]
) -> None:
    source = exchange("x", type_name)
    present: set[tuple[str, str, tuple[object, ...]]] = set()
    for adding, entries in steps:
        for queue, key, arguments in entries:
            entry = (queue, key, tuple(arguments.items()))
            bound = binding(source, BOXES[queue], key, arguments)
            assert (source.bind(bound) if adding else source.unbind(bound)) is ((entry in present) is not adding)
            (present.add if adding else present.discard)(entry)
    assert source.binding_count == len(present) == len(set(source.bindings()))
    for key in ("", "a", "b"):
        expected = {queue for queue, bound_key, _ in present if type_name == "fanout" or bound_key == key}
        assert sorted(destination.name for destination in source.match(key, {})) == sorted(expected)


def test_random_takes_each_binding_equally_often() -> None:
    source = RandomExchange("x", ExchangeTraits(), random.Random(7))
    assert list(source.match("", {})) == []
    for name in ("q0", "q1", "q2"):
        source.bind(binding(source, BOXES[name], name))
    source.bind(binding(source, BOXES["q2"], "once more"))
    taken = Counter(destination.name for _ in range(4000) for destination in source.match("", {}))
    assert taken["q0"] == pytest.approx(1000, rel=0.15)
    assert taken["q1"] == pytest.approx(1000, rel=0.15)
    assert taken["q2"] == pytest.approx(2000, rel=0.15)


@given(st.permutations(list(range(6))), st.integers(0, 6))
def test_random_never_takes_what_is_gone(order: list[int], gone: int) -> None:
    boxes = mailboxes(f"q{number}" for number in range(6))
    source = RandomExchange("x", ExchangeTraits(), random.Random(3))
    bindings = [binding(source, boxes[f"q{number}"]) for number in range(6)]
    for bound in bindings:
        source.bind(bound)
    for number in order[:gone]:
        source.unbind(bindings[number])
    taken = {destination.name for _ in range(200) for destination in source.match("", {})}
    assert taken == {f"q{number}" for number in order[gone:]}


def test_default_exchange_finds_queues_by_name() -> None:
    queues = dict(BOXES)
    default = predeclared(queues.get)[0]
    assert list(default.match("q1", {})) == [BOXES["q1"]]
    del queues["q1"]
    assert list(default.match("q1", {})) == []


def test_every_vhost_has_the_predeclared_exchanges() -> None:
    found = {source.name: source for source in predeclared(BOXES.get)}
    assert {name: source.type_name for name, source in found.items()} == {
        "": "direct",
        "amq.direct": "direct",
        "amq.fanout": "fanout",
        "amq.topic": "topic",
        "amq.headers": "headers",
        "amq.match": "headers",
        "amq.rabbitmq.trace": "topic",
    }
    assert all(source.durable and not source.auto_delete for source in found.values())
    assert [name for name, source in found.items() if source.internal] == [TRACE_EXCHANGE]


def test_types_that_can_be_declared() -> None:
    assert sorted(TYPES) == [
        "direct",
        "fanout",
        "headers",
        "topic",
        "x-consistent-hash",
        "x-delayed-message",
        "x-random",
    ]
