"""Routing through graphs of exchanges against brute force; plans hold exactly as long as they are right."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pandomq import kernel
from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.exchanges.exchange import Exchange
from pandomq.broker.publishing.routing import Router
from pandomq.limits import EXCHANGE_HOPS_MAX
from tests.support.examples import examples
from tests.unit.broker.routing.topology import Mailbox, binding, exchange, mailboxes, reached

QUEUES = [f"q{number}" for number in range(4)]
EXCHANGES = [f"x{number}" for number in range(5)]
TYPES = st.sampled_from(["direct", "fanout", "topic", "headers"])
KEYS = st.sampled_from(["a", "b", "a.b", ""])
PATTERNS = st.sampled_from(["a", "b", "a.b", "", "#", "*", "a.#", "*.b"])
ARGUMENTS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"h": 1}, {"h": 2, "g": 1}, {"x-match": "any", "h": 2, "g": 1}]
)
HEADERS: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"h": 1}, {"h": 2}, {"h": 2, "g": 1}])
ALTERNATES = st.sampled_from([None, None, *EXCHANGES, "nowhere"])


def make(name: str, type_name: str, alternate: str | None = None, **traits: Any) -> Exchange:
    return exchange(name, type_name, arguments={"alternate-exchange": alternate} if alternate else {}, **traits)


class World:
    """A router with its queues."""

    def __init__(self) -> None:
        self.queues = mailboxes(QUEUES)
        self.router = Router(self.queues.get)

    def bound(self, source: str, destination: str, key: str, arguments: dict[str, Any]) -> Binding:
        end: Mailbox | Exchange
        end = self.queues[destination] if destination in self.queues else self.router.exchanges[destination]
        return binding(self.router.exchanges[source], end, key, arguments)

    def expected(self, source: Exchange, keys: list[str], headers: dict[str, Any]) -> list[str]:
        if source.name == "":
            return sorted(set(keys) & set(self.queues))
        return sorted(reached(self.router.exchanges, source, keys, headers))

    def routed(self, source: Exchange, keys: list[str], headers: dict[str, Any]) -> list[str]:
        # Sorted, but no set: doubles would show.
        return sorted(queue.name for queue in self.router.route(source, keys, headers))


EDGES = st.tuples(st.sampled_from(EXCHANGES), st.sampled_from(EXCHANGES + QUEUES), PATTERNS, ARGUMENTS)


@settings(max_examples=examples(300))
@given(
    st.tuples(*(st.tuples(TYPES, ALTERNATES) for _ in EXCHANGES)),
    st.lists(EDGES, max_size=25),
    st.lists(KEYS, min_size=1, max_size=3, unique=True),
    HEADERS,
)
def test_route_finds_what_brute_force_finds(
    described: tuple[tuple[str, str | None], ...],
    edges: list[tuple[str, str, str, dict[str, Any]]],
    keys: list[str],
    headers: dict[str, Any],
) -> None:
    world = World()
    for name, (type_name, alternate) in zip(EXCHANGES, described, strict=True):
        world.router.add(make(name, type_name, alternate))
    for edge in edges:
        world.router.bind(world.bound(*edge))
    for name in EXCHANGES:
        source = world.router.exchanges[name]
        assert world.routed(source, keys, headers) == world.expected(source, keys, headers)
        plan = world.router.plan(source, keys[0])
        if all(type_name != "headers" for type_name, _ in described):
            assert plan is not None
        if plan is not None:
            planned = [queue.owner.name for queue in plan.queues]
            assert sorted(planned) == world.expected(source, keys[:1], headers)


class PlansUnderChange(RuleBasedStateMachine):
    """After any change, a plan that is still valid gives the same result as a new routing."""

    @initialize()
    def start(self) -> None:
        self.world = World()
        self.absent: dict[str, Mailbox] = {}
        self.plans: list[tuple[Exchange, str, kernel.Plan]] = []

    def exchanges(self) -> list[str]:
        return sorted(name for name in self.world.router.exchanges if name.startswith("x"))

    def bindings(self) -> list[Binding]:
        return [bound for name in self.exchanges() for bound in self.world.router.exchanges[name].bindings()]

    @rule(data=st.data(), type_name=TYPES, alternate=ALTERNATES)
    def add_exchange(self, data: st.DataObject, type_name: str, alternate: str | None) -> None:
        missing = sorted(set(EXCHANGES) - set(self.exchanges()))
        if missing:
            self.world.router.add(make(data.draw(st.sampled_from(missing)), type_name, alternate))

    @precondition(lambda self: self.exchanges())
    @rule(data=st.data())
    def remove_exchange(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.exchanges()))
        self.world.router.remove(self.world.router.exchanges[name])
        assert not [bound for bound in self.bindings() if name in (bound.source, bound.destination.name)]

    @precondition(lambda self: self.exchanges())
    @rule(data=st.data(), key=PATTERNS, arguments=ARGUMENTS)
    def bind(self, data: st.DataObject, key: str, arguments: dict[str, Any]) -> None:
        source = data.draw(st.sampled_from(self.exchanges()))
        destination = data.draw(st.sampled_from(self.exchanges() + sorted(self.world.queues)))
        self.world.router.bind(self.world.bound(source, destination, key, arguments))

    @precondition(lambda self: self.bindings())
    @rule(data=st.data())
    def unbind(self, data: st.DataObject) -> None:
        assert self.world.router.unbind(data.draw(st.sampled_from(self.bindings())))

    @precondition(lambda self: len(self.world.queues) > 1)
    @rule(data=st.data())
    def delete_queue(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.world.queues)))
        self.absent[name] = queue = self.world.queues.pop(name)
        self.world.router.queue_deleted(queue)
        assert not [bound for bound in self.bindings() if bound.destination is queue]

    @precondition(lambda self: self.absent)
    @rule(data=st.data())
    def declare_queue(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.absent)))
        self.world.queues[name] = self.absent.pop(name)
        self.world.router.queue_declared(name)

    @precondition(lambda self: self.exchanges())
    @rule(data=st.data(), alternate=ALTERNATES)
    def change_alternate(self, data: st.DataObject, alternate: str | None) -> None:
        source = self.world.router.exchanges[data.draw(st.sampled_from(self.exchanges()))]
        source.alternate = alternate
        self.world.router.changed(source, None)

    @rule(data=st.data(), key=KEYS)
    def plan(self, data: st.DataObject, key: str) -> None:
        source = self.world.router.exchanges[data.draw(st.sampled_from(["", *self.exchanges()]))]
        if not source.name:
            key = data.draw(st.sampled_from(QUEUES))
        plan = self.world.router.plan(source, key)
        if plan is not None:
            assert plan.valid
            assert self.world.router.plan(source, key) is plan
            self.plans.append((source, key, plan))

    @invariant()
    def valid_plans_are_right(self) -> None:
        for source, key, plan in self.plans:
            if plan.valid:
                assert self.world.router.exchanges.get(source.name) is source
                assert sorted(queue.owner.name for queue in plan.queues) == self.world.expected(source, [key], {})

    @invariant()
    def only_valid_plans_are_remembered(self) -> None:
        assert len(self.world.router._plans) == len({plan for _, _, plan in self.plans if plan.valid})


TestPlansUnderChange = PlansUnderChange.TestCase
TestPlansUnderChange.settings = settings(max_examples=examples(150), stateful_step_count=40)


@pytest.fixture
def world() -> World:
    return World()


def test_a_bind_withdraws_nothing_but_the_plans_of_its_key(world: World) -> None:
    for type_name in ("direct", "topic"):
        source = make(type_name, type_name)
        world.router.add(source)
        plans = {key: world.router.plan(source, key) for key in ("a.a", "a.b", "c")}
        world.router.bind(binding(source, world.queues["q0"], "a.b"))
        assert [key for key, plan in plans.items() if plan is not None and not plan.valid] == ["a.b"]
        world.router.unbind(binding(source, world.queues["q0"], "a.b"))
        world.router.bind(binding(source, world.queues["q0"], "*.x"))
        still = [key for key, plan in plans.items() if plan is not None and plan.valid]
        assert still == (["a.a", "c"] if type_name == "direct" else [])


def test_plans_follow_their_way_through_other_exchanges(world: World) -> None:
    first, second = make("first", "fanout"), make("second", "direct")
    world.router.add(first)
    world.router.add(second)
    world.router.bind(binding(first, second))
    plans = {key: world.router.plan(first, key) for key in ("a", "b")}
    world.router.bind(binding(second, world.queues["q1"], "a"))
    assert [key for key, plan in plans.items() if plan is not None and plan.valid] == ["b"]
    plan = world.router.plan(first, "a")
    assert plan is not None
    assert list(plan.queues) == [world.queues["q1"].kernel]


def test_alternate_is_looked_up_when_it_is_needed(world: World) -> None:
    source = make("source", "direct", "later")
    world.router.add(source)
    plan = world.router.plan(source, "k")
    assert plan is not None
    assert not plan.queues
    later = make("later", "fanout")
    world.router.add(later)
    assert not plan.valid
    world.router.bind(binding(later, world.queues["q0"]))
    assert world.routed(source, ["k"], {}) == ["q0"]
    world.router.bind(binding(source, world.queues["q1"], "k"))
    assert world.routed(source, ["k"], {}) == ["q1"]
    assert world.routed(source, ["k", "unmatched"], {}) == ["q1"]


def test_the_default_exchange_is_nobodys_alternate(world: World) -> None:
    # RabbitMQ accepts an empty name and then finds no queue through it.
    source = exchange("source", "direct", arguments={"alternate-exchange": ""})
    world.router.add(source)
    assert world.routed(source, ["q0"], {}) == []


def test_types_that_choose_look_at_the_first_key_only(world: World) -> None:
    hashing = exchange("hashing", "x-consistent-hash")
    world.router.add(hashing)
    for name in QUEUES:
        world.router.bind(binding(hashing, world.queues[name], "1"))
    for number in range(50):
        assert len(world.routed(hashing, [str(number), "other", "third"], {})) == 1
        plan = world.router.plan(hashing, str(number))
        assert plan is not None
        assert [queue.owner for queue in plan.queues] == world.router.route(hashing, [str(number)], {})


def test_random_choice_has_no_plan_wherever_it_is(world: World) -> None:
    first, chance = make("first", "direct"), exchange("chance", "x-random")
    world.router.add(first)
    world.router.add(chance)
    world.router.bind(binding(first, chance, "k"))
    assert world.router.plan(chance, "k") is None
    assert world.router.plan(first, "k") is None
    assert world.router.plan(first, "other") is not None


def test_bindings_are_there_once(world: World) -> None:
    source = world.router.exchanges["amq.direct"]
    assert world.router.bind(binding(source, world.queues["q0"], "k"))
    assert not world.router.bind(binding(source, world.queues["q0"], "k"))
    assert world.router.bind(binding(source, world.queues["q0"], "k", {"other": 1}))
    assert len(world.router.bindings_to(world.queues["q0"])) == 2
    assert world.router.unbind(binding(source, world.queues["q0"], "k"))
    assert not world.router.unbind(binding(source, world.queues["q0"], "k"))
    assert world.routed(source, ["k"], {}) == ["q0"]
    assert world.router.bindings_to(world.queues["q0"])[0].arguments == {"other": 1}


def test_auto_delete_exchanges_that_lost_their_last_binding_are_named(world: World) -> None:
    sources = [make(name, "fanout", auto_delete=name != "stays") for name in ("one", "two", "stays")]
    target = make("target", "fanout", auto_delete=True)
    for source in (*sources, target):
        world.router.add(source)
    queue = world.queues["q0"]
    for source in sources:
        world.router.bind(binding(source, queue))
    world.router.bind(binding(sources[0], queue, "second"))
    world.router.bind(binding(sources[1], target))
    world.router.bind(binding(target, target))
    del world.queues["q0"]
    assert world.router.queue_deleted(queue) == [sources[0]]
    assert world.router.remove(sources[0]) == []
    # It has a binding to itself, but is not to be removed twice.
    assert world.router.remove(target) == [sources[1]]


def test_hops_are_bounded(world: World) -> None:
    chain = [make(f"hop{number}", "fanout") for number in range(EXCHANGE_HOPS_MAX + 2)]
    for source in chain:
        world.router.add(source)
    for source, further in pairwise(chain):
        world.router.bind(binding(source, further))
    world.router.bind(binding(chain[-1], world.queues["q0"]))
    assert world.routed(chain[0], ["k"], {}) == []
    assert world.routed(chain[1], ["k"], {}) == ["q0"]


def test_plans_are_bounded() -> None:
    queues = mailboxes(QUEUES)
    router = Router(queues.get, plans_max=10)
    source = router.exchanges["amq.topic"]
    plans = [router.plan(source, str(number)) for number in range(25)]
    assert len(router._plans) <= 10
    assert [number for number, plan in enumerate(plans) if plan is not None and plan.valid] == list(range(20, 25))
