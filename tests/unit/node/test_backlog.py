"""Requests that wait because their client has answers to read: in order, each client for itself."""

from typing import Any, cast

import pytest

from pandomq.broker.client import Client
from pandomq.node.clients.backlog import Backlog


class Asker:
    """As much of a client as a backlog needs."""

    def __init__(self) -> None:
        self.asked_again = 0

    def ask_again(self) -> None:
        self.asked_again += 1


class Two:
    """Two clients, of whom some have too much to take."""

    def __init__(self) -> None:
        self.slow = cast(Client, Asker())
        self.quick = cast(Client, Asker())
        self.full: set[Client] = set()
        self.backlog = Backlog(lambda client: client not in self.full)

    def join(self, *gathered: tuple[Client, list[Any]]) -> list[tuple[Client, list[Any]]]:
        return [(client, list(inputs)) for client, inputs in self.backlog.join(list(gathered))]


@pytest.fixture
def two() -> Two:
    return Two()


def test_inputs_pass_while_no_client_waits(two: Two) -> None:
    assert two.join((two.slow, [1]), (two.quick, [2])) == [(two.slow, [1]), (two.quick, [2])]
    assert not two.backlog.ready


def test_inputs_that_were_left_come_before_new_ones(two: Two) -> None:
    two.backlog.add([(two.slow, cast(Any, [2, 3])), (two.slow, cast(Any, [4]))])
    assert two.backlog.ready and two.slow in two.backlog
    assert two.join((two.slow, [5]), (two.quick, [1])) == [(two.slow, [2, 3, 4]), (two.slow, [5]), (two.quick, [1])]
    assert two.slow not in two.backlog and two.backlog.clients() == []


def test_a_full_client_waits_with_all_its_inputs_and_delays_no_other(two: Two) -> None:
    two.full.add(two.slow)
    two.backlog.add([(two.slow, cast(Any, [2]))])
    assert not two.backlog.ready
    assert two.join((two.slow, [3]), (two.quick, [1])) == [(two.quick, [1])]
    assert two.join((two.slow, [4])) == []
    two.full.clear()
    assert two.join((two.slow, [5])) == [(two.slow, [2, 3, 4]), (two.slow, [5])]
