"""The drill of a hand-over to a named broker: what it takes for a root that stepped down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.features.drills.named_successor import NamedSuccessorFeature


@pytest.mark.parametrize(("term", "stepped_down"), [(7, False), (8, True)])
def test_a_successor_of_an_earlier_term_is_no_sign_that_the_root_stepped_down(term: int, stepped_down: bool) -> None:
    knowledge = SimpleNamespace(term=7, successor="n3")
    root: Any = SimpleNamespace(name="n1", node=SimpleNamespace(peers=SimpleNamespace(knowledge=knowledge)))

    def ask(request: Any) -> None:
        knowledge.term = term
        request(SimpleNamespace(hand_over=lambda name, on_ended: on_ended(False, "refused")))

    root.ask = ask
    feature: Any = NamedSuccessorFeature.__new__(NamedSuccessorFeature)
    feature.world = SimpleNamespace(trace=SimpleNamespace(say=lambda *_: None))
    (answer,) = feature._ask(root, "nobody")
    assert (answer.done, answer.stepped_down) == (False, stepped_down)
