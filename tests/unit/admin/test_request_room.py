"""Requests in progress: their number and their memory are limited, in all and for each user."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest

from pandomq.admin import limits
from pandomq.admin.application import Application
from pandomq.admin.refusals import Refusal
from pandomq.admin.request_room import RequestRoom, Share
from pandomq.node.settings import NodeSettings
from tests.unit.admin.one_broker import OneBroker


def room(**settings: Any) -> RequestRoom:
    return RequestRoom(NodeSettings(**settings))


def share_of(requests: RequestRoom, user: str) -> Share:
    share = Share(requests)
    share.enter(user)
    return share


def status(ask: object, *given: object) -> int:
    assert callable(ask)
    with pytest.raises(Refusal) as refused:
        ask(*given)
    return refused.value.status


def test_memory_is_limited_in_all_and_for_each_user() -> None:
    requests = room(http_per_user_bytes_max=100, http_bytes_max=150)
    ann, bob = share_of(requests, "ann"), share_of(requests, "bob")
    ann.take(100)
    assert status(share_of(requests, "ann").take, 1) == 503
    assert status(bob.take, 51) == 503
    bob.take(50)
    ann.give_back(60)
    share_of(requests, "ann").take(60)


def fail(requests: RequestRoom) -> None:
    with requests.request() as share:
        share.enter("ann")
        share.take(100)
        raise ZeroDivisionError


def test_a_share_is_returned_however_a_request_ends() -> None:
    requests = room(http_per_user_bytes_max=100, http_bytes_max=100, http_requests_per_user_max=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            fail(requests)
    with requests.request() as share:
        share.enter("bob")
        share.take(100)


def test_requests_of_one_user_are_limited_and_those_of_another_are_not_affected() -> None:
    requests = room(http_requests_per_user_max=2)
    with ExitStack() as under_way:
        for _ in range(2):
            under_way.enter_context(requests.request()).enter("ann")
        with requests.request() as share, pytest.raises(Refusal) as refused:
            share.enter("ann")
        assert (refused.value.status, refused.value.error) == (429, "too_many_requests")
        assert "http_requests_per_user_max" in refused.value.reason
        under_way.enter_context(requests.request()).enter("bob")
    with requests.request() as share:
        share.enter("ann")


def test_no_limit_of_requests() -> None:
    requests = room(http_requests_per_user_max=0)
    for _ in range(1000):
        share_of(requests, "ann")


def test_a_request_that_waits_for_room_gets_it_when_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_S_MAX", 10.0)

    async def run() -> None:
        requests = room(http_per_user_bytes_max=100, http_bytes_max=200)
        shares = [share_of(requests, "ann") for _ in range(10)]
        open_bytes = most_bytes = 0

        async def answer(share: Share) -> None:
            nonlocal open_bytes, most_bytes
            await share.wait_for(50)
            open_bytes += 50
            most_bytes = max(most_bytes, open_bytes)
            await asyncio.sleep(0.001)
            open_bytes -= 50
            share.close()

        await asyncio.gather(*map(answer, shares))
        assert most_bytes == 100

    asyncio.run(run())


def test_a_request_that_waits_for_room_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_S_MAX", 0.05)

    async def run() -> None:
        requests = room(http_per_user_bytes_max=100, http_bytes_max=200)
        share_of(requests, "ann").take(60)
        with pytest.raises(Refusal) as refused:
            await share_of(requests, "ann").wait_for(50)
        assert refused.value.status == 503

    asyncio.run(run())


def test_other_limits_apply_at_once_and_to_requests_in_progress() -> None:
    async def run() -> None:
        requests = room(http_per_user_bytes_max=100, http_bytes_max=200)
        share_of(requests, "ann").take(60)
        waiting = asyncio.create_task(share_of(requests, "ann").wait_for(50))
        await asyncio.sleep(0)
        requests.change_settings(NodeSettings(http_per_user_bytes_max=110, http_bytes_max=200))
        async with asyncio.timeout(5):
            await waiting
        assert status(share_of(requests, "ann").take, 1) == 503

    asyncio.run(run())


def test_an_application_that_replaces_another_counts_the_requests_in_progress_there() -> None:
    broker = OneBroker(http_requests_per_user_max=1)
    with broker.application.room.request() as share:
        share.enter("guest")
        changed = NodeSettings(http_requests_per_user_max=2)
        for settings, expected in ((broker.settings, 429), (changed, 200)):
            broker.application = Application(broker.node, settings, broker.clock, broker.wake, broker.application)
            assert broker.ask("GET", "/api/vhosts").status == expected
