"""Clients at the end of a life or of a world: what a refusal leaves open, and what is still to come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pandomq.sim.clients.data_port.rival_lessee import RivalLessee
from pandomq.sim.clients.drainer import Drainer

MESSAGE = cast(Any, "message")
STOPPING = {"error": 503, "text": "this broker is stopping"}
ENDING = {"error": 503, "text": "lease 'l' of queue 'q' is ending: try again in a moment"}
UNKNOWN = {"error": 404, "text": "NOT_FOUND - no lease 'l'"}


def lessee(unsettled: list[Any]) -> Any:
    """A lessee that waits for the answer to a release of one message."""
    client: Any = RivalLessee.__new__(RivalLessee)
    ledger = SimpleNamespace(epoch=0, unsettle=unsettled.append)
    client.scene, client._epoch = SimpleNamespace(ledger=ledger), 0
    client._kind, client._lease = SimpleNamespace(name="q"), "l"
    client._checker = SimpleNamespace(said_over=lambda queue, lease: None)
    client._settled, client._uncertain = [MESSAGE], set()
    return client


@pytest.mark.parametrize("refusal", [ENDING, UNKNOWN])
def test_a_refused_release_settles_nothing(refusal: dict[str, Any]) -> None:
    unsettled: list[Any] = []
    lessee(unsettled).hear_refusal("release", refusal)
    assert unsettled == [("q", MESSAGE)]


def test_a_release_that_a_stopping_broker_does_not_answer_may_have_taken_effect() -> None:
    unsettled: list[Any] = []
    client = lessee(unsettled)
    client.hear_refusal("release", STOPPING)
    # The broker is back, and does not know the lease: the release may be the reason.
    client._settled = [MESSAGE]
    client.hear_refusal("release", UNKNOWN)
    assert unsettled == []


@pytest.mark.parametrize(("delayed", "leases"), [(1, 0), (0, 1), (0, 0)])
def test_queues_count_as_empty_when_nothing_is_delayed_or_leased(delayed: int, leases: int) -> None:
    waiting = SimpleNamespace(kernel=SimpleNamespace(ready_count=delayed))
    exchanges = {"later": SimpleNamespace(waiting=waiting), "amq.topic": SimpleNamespace(waiting=None)}
    vhost = SimpleNamespace(router=SimpleNamespace(exchanges=exchanges))
    broker = SimpleNamespace(state=SimpleNamespace(vhosts={"/": vhost}, leases=range(leases)))
    client: Any = Drainer.__new__(Drainer)
    client.cable = SimpleNamespace(machine=SimpleNamespace(node=SimpleNamespace(broker=broker)))
    client.scene = SimpleNamespace(agenda=SimpleNamespace(after=lambda delay_ms, call: None))
    client._waiting = {"q": 1}
    client._look("q", 0)
    assert client.content is (delayed + leases == 0)
