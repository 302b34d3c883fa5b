"""Topic patterns against a matcher that tries every possibility."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq.broker.exchanges.exchange import ExchangeTraits
from pandomq.broker.exchanges.topic import TopicExchange
from tests.support.examples import examples
from tests.unit.broker.routing.topology import binding, mailboxes, topic_matches


def dotted(words: list[str], size_max: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), max_size=size_max).map(".".join)


# Few words and many wildcards, so that patterns match often and in several ways; now and then something odd.
KEYS = dotted(["a", "b"], 8) | dotted(["a", "b", "", "é", "*", "#"], 6)
PATTERNS = dotted(["a", "#", "*"], 6) | dotted(["a", "b", "", "é", "*", "#"], 6)

BOXES = mailboxes(f"q{number}" for number in range(4))
BINDINGS = st.lists(st.tuples(PATTERNS, st.sampled_from(sorted(BOXES))), max_size=20, unique=True)


def topic() -> TopicExchange:
    return TopicExchange("t", ExchangeTraits())


@settings(max_examples=examples(300))
@given(BINDINGS, st.lists(KEYS, min_size=1, max_size=10), st.data())
def test_matches_as_backtracking_does(bound: list[tuple[str, str]], keys: list[str], data: st.DataObject) -> None:
    exchange = topic()
    for pattern, queue in bound:
        assert exchange.bind(binding(exchange, BOXES[queue], pattern))
    gone = data.draw(st.sets(st.sampled_from(bound))) if bound else set()
    for pattern, queue in gone:
        assert exchange.unbind(binding(exchange, BOXES[queue], pattern))
    left = [entry for entry in bound if entry not in gone]
    for key in keys:
        expected = sorted(queue for pattern, queue in left if topic_matches(pattern, key))
        # One destination for each binding that matches, so no node was visited twice.
        per_pattern = sorted(destination.name for destination in exchange.match(key, {}))
        assert per_pattern == expected


@given(BINDINGS)
def test_nothing_is_left_behind(bound: list[tuple[str, str]]) -> None:
    exchange = topic()
    bindings = [binding(exchange, BOXES[queue], pattern) for pattern, queue in bound]
    for entry in bindings:
        exchange.bind(entry)
    for entry in bindings:
        exchange.unbind(entry)
    assert exchange.binding_count == 0
    assert exchange._root.useless


def test_empty_key_has_no_words() -> None:
    exchange = topic()
    for pattern in ("*", "#", "", "#.#", "a"):
        exchange.bind(binding(exchange, mailboxes([pattern or "empty"])[pattern or "empty"], pattern))
    assert {destination.name for destination in exchange.match("", {})} == {"#", "empty", "#.#"}


def test_many_wildcards_do_not_blow_up() -> None:
    # Backtracking would try more ways than there are atoms.
    exchange = topic()
    box = BOXES["q0"]
    exchange.bind(binding(exchange, box, ".".join(["#", "a", "*"] * 20 + ["z"])))
    exchange.bind(binding(exchange, box, ".".join(["#", "a"] * 40)))
    assert list(exchange.match(".".join(["a"] * 120), {})) == [box]


def test_only_plain_patterns_concern_one_key() -> None:
    exchange = topic()
    box = BOXES["q0"]
    assert exchange.key_of(binding(exchange, box, "a.b")) == "a.b"
    assert exchange.key_of(binding(exchange, box, "")) == ""
    assert exchange.key_of(binding(exchange, box, "a*.#b")) == "a*.#b"
    assert exchange.key_of(binding(exchange, box, "a.*")) is None
    assert exchange.key_of(binding(exchange, box, "#.a")) is None
