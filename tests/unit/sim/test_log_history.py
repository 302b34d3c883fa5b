"""The history of logs across a forced promotion, and the check that committed logs agree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.replicas.history import LogHistory
from pandomq.sim.replicas.logs_agree import LogsAgree


def machine(life: int, *entries: tuple[str, str]) -> Any:
    """Returns a machine with these entries, each with its epoch and its content."""
    chains = {index: hash(entries[:index]) for index in range(1, len(entries) + 1)}
    core = SimpleNamespace(epoch_id_at=lambda index: entries[index - 1][0])
    journal = SimpleNamespace(first_index=1, last_index=len(entries), chain_at=chains.get)
    return SimpleNamespace(name=f"n{life}", life=life, replica=SimpleNamespace(_core=core), journal=journal)


def report(history: LogHistory, one: Any, last: int) -> None:
    LogsAgree(history).committed(one, history.newly_committed(one, last))


def test_two_machines_commit_the_same_log() -> None:
    history = LogHistory([])
    report(history, machine(1, ("", "a"), ("", "b")), 2)
    report(history, machine(2, ("", "a"), ("", "b"), ("", "c")), 3)
    assert history.longest == 3
    with pytest.raises(BrokenPromise):
        report(history, machine(3, ("", "a"), ("", "x")), 2)


def test_a_promotion_may_replace_what_was_committed_and_all_follow_it() -> None:
    history = LogHistory([])
    report(history, machine(1, ("", "a"), ("", "b"), ("", "c")), 3)
    history.promoted(machine(2, ("", "a"), ("", "x"), ("e", "begins")), "e")
    assert history.longest == 3
    # A machine that has not received the promotion repeats its report.
    report(history, machine(3, ("", "a"), ("", "b"), ("", "c"), ("", "d")), 4)
    assert history.longest == 3
    report(history, machine(4, ("", "a"), ("", "x"), ("e", "begins"), ("e", "d")), 4)
    assert history.longest == 4
    with pytest.raises(BrokenPromise):
        report(history, machine(5, ("", "a"), ("", "b"), ("e", "begins")), 3)
