"""How long the passes of the loop take."""

from __future__ import annotations

import pytest

from pandomq.runtime.passes import LONG_S, Passes


def test_the_longest_is_kept_and_a_long_one_logged(caplog: pytest.LogCaptureFixture) -> None:
    times = iter([1.0, 1.25, 2.0, 2.0 + 2 * LONG_S, 5.0, 5.25])
    passes = Passes(lambda: next(times))
    for _ in range(3):
        passes.begin()
        passes.end(passes.began_s)
    view = passes.view()
    assert (view.count, view.longest_s) == (3, 2 * LONG_S)
    assert view.total_s == pytest.approx(0.5 + 2 * LONG_S)
    assert [record.message for record in caplog.records] == [
        "this broker was busy for 1.0 s and handled no input meanwhile; a root of several brokers steps down "
        "when it is busy for longer than lease_ms"
    ]


def test_the_next_may_begin_before_the_last_has_ended() -> None:
    times = iter([1.0, 1.5, 1.75])
    passes = Passes(lambda: next(times))
    passes.begin()
    began_s = passes.began_s
    passes.begin()
    passes.end(began_s)
    assert passes.view().longest_s == 0.75
