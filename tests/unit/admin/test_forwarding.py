"""Which broker a request is passed on to, and what is said when that cannot be."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request

from pandomq.admin.call import Call
from pandomq.admin.forwarding import FORWARDED_BY, forward
from pandomq.admin.identity import Identity
from pandomq.admin.refusals import Refusal
from pandomq.node.view_records import PeerLinkView


def call(*links: PeerLinkView, headers: dict[str, str] | None = None) -> Call:
    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": "PUT", "path": "/x", "raw_path": b"/x", "query_string": b"a=b", "headers": raw}
    services: Any = SimpleNamespace(
        settings=SimpleNamespace(name="n1"), node=SimpleNamespace(views=SimpleNamespace(peer_links=lambda: links))
    )
    return Call(services, Request(scope), {}, Identity("u", ()))


def link(http: str, address: str = "10.0.0.2:5672") -> PeerLinkView:
    return PeerLinkView("n2", address, "", http, "1", "linked", True, 0, 0, 0)


def refusal(asked: Call) -> str:
    with pytest.raises(Refusal) as refused:
        asyncio.run(forward(asked, "n2"))
    assert refused.value.status == 503
    return str(refused.value.reason)


def test_a_broker_that_is_not_linked_cannot_be_asked() -> None:
    assert refusal(call()) == "this is for n2, to which there is no link"
    assert refusal(call(link(""))) == "this is for n2, which has no HTTP API, or has not said where"


@pytest.mark.parametrize("http", ["127.0.0.1:15672", "localhost:15672", "[::1]:15672"])
def test_the_loopback_of_another_machine_is_not_ours(http: str) -> None:
    assert "of its own machine: set node.http or cluster.advertise_http there" in refusal(call(link(http)))


def test_a_request_is_passed_on_once() -> None:
    asked = call(link("10.0.0.2:15672"), headers={FORWARDED_BY: "n3"})
    assert refusal(asked) == "n3 took n1 for the one to ask, and that is n2"


def test_who_does_not_answer_is_named() -> None:
    assert refusal(call(link("127.0.0.1:1", "127.0.0.1:5672"))).startswith("n2 does not answer at http://127.0.0.1:1: ")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\ncontent-type: application/json\r\nx-own: 1\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        b"2\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_the_answer_comes_back_as_it_was(answer: bytes) -> None:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async def run() -> tuple[int, bytes, str | None, str | None]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        asked = call(link(place, "127.0.0.1:5672"), headers={"authorization": "Basic x", "cookie": "y"})
        response = await forward(asked, "n2")
        server.close()
        return (
            response.status_code,
            bytes(response.body),
            response.headers.get("content-type"),
            response.headers.get("x-own"),
        )

    assert asyncio.run(run()) == (201, b"{}", "application/json", None)
    [head] = heard
    assert head.startswith(b"PUT /x?a=b HTTP/1.1\r\n")
    assert b"authorization: Basic x" in head.replace(b"Authorization", b"authorization")
    assert b"cookie" not in head and b"x-pandomq-forwarded-by: n1" in head.lower()
