"""When two bindings are one, and what they are called."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.broker.exchanges.binding import Binding
from pandomq.fieldtable import Int32
from tests.unit.broker.routing.topology import binding, exchange, mailboxes

BOXES = mailboxes(("a", "b"))
OTHER = mailboxes(("a", "b"))
X = exchange("x", "direct")
TABLES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from([1, Int32(1), True, "1", None]), max_size=3)
PARTS = st.tuples(st.sampled_from("xy"), st.sampled_from("ab"), st.sampled_from(["", "k"]), TABLES)


def make(parts: tuple[str, str, str, dict[str, Any]], boxes: dict[str, Any] = BOXES) -> Binding:
    source, queue, key, arguments = parts
    return Binding.to_queue(source, boxes[queue], key, arguments)


def exactly(table: dict[str, Any]) -> set[tuple[str, type, Any]]:
    return {(name, type(value), value) for name, value in table.items()}


@given(PARTS, PARTS)
def test_bindings_are_equal_if_all_their_parts_are(left: Any, right: Any) -> None:
    same = left[:3] == right[:3] and exactly(left[3]) == exactly(right[3])
    assert (make(left) == make(right, OTHER)) is same
    if same:
        assert hash(make(left)) == hash(make(right, OTHER))


def test_order_of_arguments_does_not_matter() -> None:
    assert make(("x", "a", "", {"p": 1, "q": 2})) == make(("x", "a", "", {"q": 2, "p": 1}))


def test_a_queue_is_not_an_exchange_of_its_name() -> None:
    assert binding(X, mailboxes(["n"])["n"]) != binding(X, exchange("n", "direct"))


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        make(("x", "a", "", {})).source = "y"  # type: ignore[misc]


def test_properties_key_has_rabbitmqs_form() -> None:
    assert make(("x", "a", "", {})).properties_key == "~"
    assert make(("x", "a", "a.b_c-1", {})).properties_key == "a.b_c-1"
    assert make(("x", "a", "a ~/#*é", {})).properties_key == "a+%7E%2F%23%2A%C3%A9"
    with_arguments = make(("x", "a", "k", {"p": 1})).properties_key
    assert with_arguments.startswith("k~")
    assert len(with_arguments) == 24
    assert make(("x", "a", "k", {"p": 2})).properties_key != with_arguments
    assert make(("x", "a", "", {"p": 1})).properties_key == with_arguments[1:]
