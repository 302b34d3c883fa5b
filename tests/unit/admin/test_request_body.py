"""Bodies of requests: read within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from starlette.requests import Request

from pandomq.admin import limits
from pandomq.admin.access.identity import HttpUser
from pandomq.admin.bodies import decode_fields, decode_object, split
from pandomq.admin.call import HttpCall
from pandomq.admin.refusals import Refusal
from pandomq.admin.request_room import RequestRoom, Share
from pandomq.node.settings import NodeSettings


def call(pieces: Iterable[bytes | None], headers: dict[str, str] | None = None) -> HttpCall:
    """With a body that comes in these pieces; None hangs up, and after the last one nothing comes."""
    left = iter(pieces)

    async def receive() -> Any:
        for piece in left:
            if piece is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": piece != b""}
        await asyncio.sleep(3600)

    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": "PUT", "path": "/", "query_string": b"", "headers": raw}
    share = Share(RequestRoom(NodeSettings()))
    share.enter("u")
    services: Any = SimpleNamespace()
    return HttpCall(services, Request(scope, receive), {}, HttpUser("u", ()), share)


def refusal(asked: HttpCall) -> Refusal:
    with pytest.raises(Refusal) as refused:
        asyncio.run(asked.read_body())
    return refused.value


def test_a_body_in_pieces() -> None:
    asked = call([b'{"a"', b": 1}", b""])
    asyncio.run(asked.read_body())
    assert asked.value("a") == 1
    assert not asked.has("b")


def test_a_body_that_never_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_S_MAX", 0.05)
    refused = refusal(call([b'{"a"']))
    assert (refused.status, refused.headers) == (408, {"connection": "close"})


def test_a_body_that_is_broken_off() -> None:
    assert refusal(call([b'{"a"', None])).status == 400


def test_a_body_that_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL_BODY_BYTES_MAX", 100)
    assert refusal(call([b" " * 60, b" " * 60, b""])).status == 413
    assert refusal(call([], {"content-length": "101"})).status == 413
    asyncio.run(call([b" " * 100, b""], {"content-length": "100"}).read_body())


@pytest.mark.parametrize(
    ("value", "meaning"), [(True, True), (False, False), ("true", True), ("false", False), (1, None), ("yes", None)]
)
def test_booleans_as_rabbitmq_takes_them(value: Any, meaning: bool | None) -> None:
    asked = call([])
    asked._body = {"flag": value}
    if meaning is None:
        with pytest.raises(Refusal):
            asked.boolean("flag")
    else:
        assert asked.boolean("flag") is meaning
    assert asked.boolean("absent") is False


def test_nothing_is_nested_deeper_than_the_broker_knows() -> None:
    assert decode_object(b'{"a": ' + b"[" * 60 + b"]" * 60 + b"}")
    with pytest.raises(Refusal, match="nested deeper"):
        decode_object(b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}")


class Fields(msgspec.Struct):
    items: msgspec.Raw = msgspec.Raw(b"[]")


def fields(octets: bytes) -> Fields:
    return asyncio.run(decode_fields(octets, Fields))


def test_a_large_body_is_taken_apart_without_being_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fields(b' {"other": [[1]], "items": [{"a": 1}, {"b": [2]}]} ')
    assert [bytes(one) for one in asyncio.run(split("items", found.items))] == [b'{"a": 1}', b'{"b": [2]}']
    assert asyncio.run(split("items", fields(b" ").items)) == []
    for items in (b"[1, 2]", b"[{}, 1]", b"{}", b"5"):
        with pytest.raises(Refusal, match="items: expected a list of objects"):
            asyncio.run(split("items", msgspec.Raw(items)))
    monkeypatch.setattr(limits, "BODY_STRUCTURES_MAX", 3)
    with pytest.raises(Refusal, match="more than 3 objects and lists"):
        fields(b'{"other": [[], []]}')
