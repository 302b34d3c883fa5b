"""A query ends with the batch that is being written, and what went wrong with it is told; what did not is not."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from pandomq.pipeline.batch_gate import BatchGate, Interrupted


def a_query(failure: Exception | None = None, *, active: bool = True) -> Any:
    """As far as a gate looks at one."""
    query = Mock(isActive=active)
    query.exception.return_value = failure
    query.stop.side_effect = lambda: setattr(query, "isActive", False)
    return query


class Torn(Exception):
    pass


@pytest.fixture
def gate() -> BatchGate:
    return BatchGate(Mock())


def test_the_batch_that_is_written_is_waited_for(gate: BatchGate) -> None:
    query = a_query(Torn("by the batch that came too late"))
    assert gate.waits_for(query, 1)
    with gate.batch():
        gate.close()
        assert gate.waits_for(query, 1)
        gate.close(hurries=False)
        assert gate.waits_for(query, 1)
    assert not gate.waits_for(query, 1)
    with pytest.raises(Interrupted), gate.batch():
        raise AssertionError("it is closed")
    gate.end(query)
    assert not query.isActive


def test_a_second_close_does_not_wait(gate: BatchGate) -> None:
    query = a_query(Torn("by being stopped"))
    with gate.batch():
        gate.close()
        gate.close()
        assert not gate.waits_for(query, 1)
    gate.end(query)


def test_the_error_of_a_batch_that_fails_is_raised(gate: BatchGate) -> None:
    with pytest.raises(Torn), gate.batch():
        raise Torn
    gate.close()
    with pytest.raises(Torn, match="in the batch"):
        gate.end(a_query(Torn("in the batch")))


def test_the_error_of_a_query_is_raised_unless_it_was_stopped(gate: BatchGate) -> None:
    gate.close()
    gate.end(a_query(Torn("while it looked for news")))
    dead = a_query(Torn("by itself"), active=False)
    assert not gate.waits_for(dead, 1)
    with pytest.raises(Torn, match="by itself"):
        gate.end(dead)
