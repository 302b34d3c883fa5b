"""`pandomq top`: rates from one look to the next, and what a pipe gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pandomq.cli.failures import Failure, NoBroker
from pandomq.cli.top import TopSample, _looks, rates
from tests.unit.cli.conftest import Type
from tests.unit.cli.fake_api import FakeApi

QUEUES_TARGET = "/api/queues?page=1&page_size=2&sort=messages&sort_reverse=true"


def overview(publish: int, rate: float = 0.0) -> dict[str, Any]:
    return {
        "node": "n1",
        "message_stats": {"publish": publish, "publish_details": {"rate": rate}},
        "object_totals": {"connections": 1, "channels": 2, "queues": 3, "consumers": 4},
        "queue_totals": {"messages_ready": 5, "messages_unacknowledged": 6},
    }


def test_rates_are_of_the_interval() -> None:
    before, now = TopSample(10.0, overview(100), []), TopSample(12.0, overview(500), [])
    assert rates(before, now)["publish"] == 200.0
    assert rates(None, TopSample(0.0, overview(100, rate=7.5), []))["publish"] == 7.5


def test_a_broker_that_was_started_anew_has_no_negative_rates() -> None:
    assert rates(TopSample(0.0, overview(100), []), TopSample(1.0, overview(3), []))["publish"] == 0.0


def test_a_broker_without_counters_has_rates_of_nothing() -> None:
    assert set(rates(None, TopSample(0.0, {}, [])).values()) == {0.0}
    assert set(rates(TopSample(0.0, {}, []), TopSample(1.0, {}, [])).values()) == {0.0}


@pytest.mark.parametrize("paged", [True, False])
def test_the_busiest_queues_come_first(ask: Type, api: FakeApi, paged: bool) -> None:
    queues = [{"vhost": "/", "name": str(count), "messages": count} for count in (1, 3, 2)]
    api.on("GET", "/api/cluster", {})
    api.on("GET", "/api/overview", overview(1, rate=2.0))
    api.on("GET", QUEUES_TARGET, {"items": queues, "page": 1} if paged else queues)
    lines = ask("top", "--count", "1", "--rows", "2").stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["publish/s", "confirm/s", "deliver/s"]
    assert lines[1].split("\t")[:3] == ["2.0", "0.0", "0.0"]
    assert [line.split("\t")[1] for line in lines[3:]] == ["3", "2"]


def test_json_is_a_line_for_each_look(ask: Type, api: FakeApi) -> None:
    api.on("GET", "/api/cluster", {})
    api.on("GET", "/api/overview", overview(1))
    api.on("GET", QUEUES_TARGET, [{"vhost": "/", "name": "q", "messages": 1}])
    lines = ask("top", "--count", "2", "--interval", "0.1", "--rows", "2", "--json").stdout.splitlines()
    assert len(lines) == 2
    assert json.loads(lines[1])["queues"][0]["name"] == "q"
    assert json.loads(lines[1])["totals"]["queues"] == 3


def test_top_shows_when_the_broker_comes_back() -> None:
    script: Iterator[TopSample | Failure] = iter(
        [TopSample(0.0, overview(1), []), NoBroker("gone"), TopSample(2.0, overview(5), [])]
    )

    def take() -> TopSample:
        step = next(script)
        if isinstance(step, Failure):
            raise step
        return step

    seen = list(_looks(take, 0.0, 3, patient=True))
    assert [isinstance(reading, Failure) for reading in seen] == [False, True, False]
    last = seen[-1]
    assert not isinstance(last, Failure)
    assert last[0]["publish"] == 2.0


def test_a_broker_that_was_never_there_is_not_waited_for() -> None:
    def take() -> TopSample:
        raise NoBroker("none")

    with pytest.raises(NoBroker):
        next(_looks(take, 0.0, 0, patient=True))
