"""Which broker a request is passed on to, and what is said when that cannot be."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from pandomq.admin.access.identity import BY_KEY, HttpUser
from pandomq.admin.call import HttpCall
from pandomq.admin.forwarding import AnswerLost, forward
from pandomq.admin.refusals import Refusal
from pandomq.admin.request_room import RequestRoom, Share
from pandomq.cluster.passed_requests import PassedAnswer, PassedRequest
from pandomq.node.settings import NodeSettings

USER = HttpUser("u", ())


class Requests:
    """Stands for the links: objects, or answers at once."""

    def __init__(self, reason: str | None = None, answer: PassedAnswer | str | None = None) -> None:
        self._reason = reason
        self._answer = answer
        self.asked: list[tuple[str, PassedRequest]] = []
        self.given_up: list[int] = []

    def objection(self, name: str) -> str | None:
        return self._reason

    def ask(self, name: str, request: PassedRequest, on_answer: Any) -> int:
        self.asked.append((name, request))
        if self._answer is not None:
            on_answer(self._answer)
        return 7

    def give_up(self, number: int) -> None:
        self.given_up.append(number)


def call(requests: Requests | None, identity: HttpUser = USER, **headers: str) -> HttpCall:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "PUT", "path": "/x", "raw_path": b"/x", "query_string": b"a=b", "headers": raw}
    node = SimpleNamespace(peer_requests=requests)
    services: Any = SimpleNamespace(settings=SimpleNamespace(name="n1"), node=node, wake=lambda: None)
    share = Share(RequestRoom(NodeSettings()))
    return HttpCall(services, Request(scope), {}, identity, share)


def refusal(asked: HttpCall) -> str:
    with pytest.raises(Refusal) as refused:
        asyncio.run(forward(asked, "n2"))
    assert refused.value.status == 503
    return str(refused.value.reason)


def test_a_broker_that_cannot_be_asked_is_named_with_the_reason() -> None:
    assert (
        refusal(call(None))
        == "this request is for n2, and cannot be passed on: this broker has no links to other brokers"
    )
    told = refusal(call(Requests("there is no link to it")))
    assert told == "this request is for n2, and cannot be passed on: there is no link to it"


def test_a_request_is_passed_on_once() -> None:
    asked = call(Requests())
    asked.passed_on_by = "n3"
    assert refusal(asked) == "n3 passed this on to n1, but it is a request for n2"


def test_a_broker_that_does_not_answer_is_named_and_the_request_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pandomq.admin.limits.FORWARD_S_MAX", 0.05)
    requests = Requests()
    assert refusal(call(requests)) == "n2 does not respond; it is not known whether the request was carried out"
    assert requests.given_up == [7]


def test_a_link_that_goes_down_leaves_it_open_whether_the_request_was_done() -> None:
    with pytest.raises(AnswerLost):
        asyncio.run(forward(call(Requests(answer="the link to n2 is down")), "n2"))


@pytest.mark.parametrize(("identity", "user", "by_key"), [(USER, "u", False), (BY_KEY, "", True)])
def test_the_answer_comes_back_as_it_was_and_the_login_stays_here(identity: HttpUser, user: str, by_key: bool) -> None:
    requests = Requests(answer=PassedAnswer(201, (("content-type", "application/json"),), b"{}"))
    asked = call(requests, identity, authorization="Basic x", cookie="y", accept="z")
    asked.octets = b"body"
    response = asyncio.run(forward(asked, "n2"))
    assert (response.status_code, response.body) == (201, b"{}")
    assert response.headers["content-type"] == "application/json"
    assert requests.asked == [("n2", PassedRequest("PUT", b"/x?a=b", user, by_key, (("accept", "z"),), b"body"))]
